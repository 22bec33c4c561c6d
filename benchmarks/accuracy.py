"""The results page's sections on trained networks: accuracy.json and detection.json."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.records import read_results

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
            f"binary, PhoneBit ({_devices(rows)})", "equal logits", "checkpoint",
            ".pbit")  # fmt: skip
    cells = [
        (
            TITLES[row["network"]],
            f"{row['accuracy_of_float_twin']:.2%}",
            f"{row['accuracy_in_torch']:.2%}",
            *_engines(row, "accuracy", "pictures", "pictures_with_equal_logits"),
            *_sizes(row),
        )
        for row in rows
    ]
    return f"""## Accuracy

Fashion-MNIST, {rows[0]["pictures"]:,} test images. Float twins have the same layers \
with full-precision weights and ReLU. *Equal logits*: images for which all ten are \
equal to PyTorch's to the last bit.

{markdown_table(head, cells)}

Trained on {training["device"]} in {training["seconds"] / 60:.1f} minutes, all eight, \
{_commands(results)} Recipe: `training/fashion_mnist_torch/README.md`.
"""


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
