"""The results page's sections on trained networks: accuracy.json and detection.json."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.records import provenance, read_results

Row = dict[str, Any]
TITLES = {
    "vgg_small": "VGG-small",
    "alexnet_small": "AlexNet-small",
    "resnet18_small": "ResNet-18-small",
    "vit_small": "ViT-small",
    "yolov2_tiny_quarter": "YOLOv2-Tiny, a quarter of the filters",
    "yolov2_tiny_half": "YOLOv2-Tiny, half of the filters",
    "yolov2_tiny": "YOLOv2-Tiny, as in the paper",
}


def section() -> str:
    """Markdown: of each task what the inputs are, one table, the commands."""
    return f"{classification()}\n{detection()}"


def classification() -> str:
    """Accuracy on Fashion-MNIST."""
    results = read_results("accuracy.json")
    training, rows = results["training"], results["networks"]
    head = ("network", "float twin, PyTorch", "binary, PyTorch",
            f"binary, PhoneBit ({_devices(rows)})", "equal logits", "8-bit layers", "same class",
            "checkpoint", ".pbit")  # fmt: skip
    cells = [
        (
            TITLES[row["network"]],
            f"{row['accuracy_of_float_twin']:.2%}",
            f"{row['accuracy_in_torch']:.2%}",
            *_engines(row, "accuracy", "pictures", "pictures_with_equal_logits"),
            f"{row['layers_in_8_bits']['accuracy']:.2%}",
            f"{row['layers_in_8_bits']['pictures_with_same_class']:,}",
            *_sizes(row),
        )
        for row in rows
    ]
    return f"""## Accuracy

Fashion-MNIST, {rows[0]["pictures"]:,} test images. Float twins have the same layers \
with full-precision weights and ReLU. *Equal logits*: images for which all ten are \
equal to PyTorch's to the last bit. *8-bit layers*: full-precision layers in int8 \
(`--float-weights i8`, `--precision fast`); *same class*: images that are classified as by PyTorch.

{markdown_table(head, cells)}

{adabin()}

Trained on {training["device"]} in {training["seconds"] / 60:.1f} minutes, all eight, \
{_commands(results)} Recipe: `training/fashion_mnist_torch/README.md`.
"""


def adabin() -> str:
    """What 8-bit layers change in a network that others trained."""
    results = read_results("accuracy_adabin.json")
    counts = [
        f"{row['pictures']:,} {name}: {row['right_exact']:,} correct, with 8-bit layers "
        f"{row['right_in_8_bits']:,} ({row['same_class']:,} with the same class)"
        for name, row in results["sets"].items()
    ]
    command = "python -m benchmarks.adabin --checkpoint FILE --pictures FOLDER"
    source = provenance(results["context"], command)
    return f"AdaBin's ResNet-20, its authors' checkpoint: {'; '.join(counts)}. {source}."


def eight_bit_effect() -> str:
    """What 8-bit layers change in trained networks: percentage points, and images' classes."""
    effects = [
        (
            TITLES[row["network"]],
            100 * (row["layers_in_8_bits"]["accuracy"] - row["engine"]["cpu"]["accuracy"]),
            row["pictures"] - row["layers_in_8_bits"]["pictures_with_same_class"],
            f"{row['pictures']:,} images",
        )
        for row in read_results("accuracy.json")["networks"]
    ]
    first, row = read_results("accuracy_adabin.json")["sets"].values()
    change = 100 * (row["right_in_8_bits"] - row["right_exact"]) / row["pictures"]
    images = f"{row['pictures']:,} variants of {first['pictures']} images"
    effects.append(("AdaBin's ResNet-20", change, row["pictures"] - row["same_class"], images))
    return "; ".join(
        f"{name} {change:+.2f} points ({changed} of {images} change their class)"
        for name, change, changed, images in effects
    )


def detection() -> str:
    """Mean average precision on made-up scenes."""
    results = read_results("detection.json")
    training, rows = results["training"], results["networks"]
    head = ("network", "mAP, PyTorch", f"mAP, PhoneBit ({_devices(rows)})", "equal outputs",
            "checkpoint", ".pbit", "training steps")  # fmt: skip
    cells = [
        (
            TITLES[row["network"]],
            f"{row['map_in_torch']:.2%}",
            *_engines(row, "map", "scenes", "scenes_with_equal_outputs"),
            *_sizes(row),
            f"{training['steps'][row['network']]:,} in "
            f"{training['seconds'][row['network']] / 60:.1f} min",
        )
        for row in rows
    ]
    return f"""## Detection

{rows[0]["scenes"]:,} test scenes of 416x416 pixels with {rows[0]["garments"]:,} \
garments of Fashion-MNIST's test images on clutter; ten classes; mean average precision \
at an overlap of 0.5, as PASCAL VOC measures. *Equal outputs*: scenes for which all \
12,675 numbers of the head are equal to PyTorch's to the last bit.

{markdown_table(head, cells)}

Trained on {training["device"]}, {training["scenes"]:,} scenes, \
{_commands(results)} Scenes and recipe: `training/garment_scenes/README.md`.
"""


def _devices(rows: list[Row]) -> str:
    return " / ".join(rows[0]["engine"])


def _engines(row: Row, result: str, inputs: str, equal: str) -> tuple[str, str]:
    """What PhoneBit's devices reach, and for how many inputs they equal PyTorch."""
    engines = row["engine"].values()
    return (
        " / ".join(f"{engine[result]:.2%}" for engine in engines),
        " / ".join(f"{engine[equal]:,} of {row[inputs]:,}" for engine in engines),
    )


def _sizes(row: Row) -> list[str]:
    return [f"{row[size] / 1000:,.0f} kB" for size in ("checkpoint_bytes", "pbit_bytes")]


def _commands(results: Row) -> str:
    training = results["training"]
    return (
        f"{training['date']}: `{training['command']}`. Compared on {results['date']} with PyTorch "
        f"{results['versions']['torch']}: `{results['command'].strip()}`."
    )
