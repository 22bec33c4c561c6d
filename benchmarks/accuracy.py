"""The results page's sections on trained networks: accuracy.json and detection.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.markdown import Columns, filled, records_table
from benchmarks.records import Record, provenance, read_results

PAGE: Final = Path(__file__).with_suffix(".md")
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
    classified, detected = read_results("accuracy.json"), read_results("detection.json")
    adabin = read_results("accuracy_adabin.json")
    command = "python -m benchmarks.adabin --checkpoint FILE --pictures FOLDER"
    values = {
        "classified": classified,
        "minutes": classified["training"]["seconds"] / 60,
        "accuracies": classification_table(classified["networks"]),
        "classification_commands": _commands(classified),
        "images": classified["networks"][0]["pictures"],
        "adabin": "; ".join(
            f"{row['pictures']:,} {name}: {row['right_exact']:,} correct, with 8-bit layers "
            f"{row['right_in_8_bits']:,} ({row['same_class']:,} with the same class)"
            for name, row in adabin["sets"].items()
        ),
        "adabin_source": provenance(adabin["context"], command),
        "detected": detected,
        "precisions": detection_table(detected),
        "detection_commands": _commands(detected),
    }
    return filled(PAGE, values)


def classification_table(rows: list[Record]) -> str:
    """Accuracy on Fashion-MNIST."""
    columns: Columns = (
        ("network", _title),
        ("float twin, PyTorch", "{accuracy_of_float_twin:.2%}"),
        ("binary, PyTorch", "{accuracy_in_torch:.2%}"),
        (f"binary, PhoneBit ({_devices(rows)})", _by_engine("accuracy", ".2%")),
        ("equal logits", _by_engine("pictures_with_equal_logits", ",", "pictures")),
        ("8-bit layers", "{layers_in_8_bits[accuracy]:.2%}"),
        ("same class", "{layers_in_8_bits[pictures_with_same_class]:,}"),
        *SIZES,
    )
    return records_table(rows, columns)


def detection_table(results: Record) -> str:
    """Mean average precision on made-up scenes."""
    training, rows = results["training"], results["networks"]

    def steps(row: Record) -> str:
        name = row["network"]
        return f"{training['steps'][name]:,} in {training['seconds'][name] / 60:.1f} min"

    columns: Columns = (
        ("network", _title),
        ("mAP, PyTorch", "{map_in_torch:.2%}"),
        (f"mAP, PhoneBit ({_devices(rows)})", _by_engine("map", ".2%")),
        ("equal outputs", _by_engine("scenes_with_equal_outputs", ",", "scenes")),
        *SIZES,
        ("training steps", steps),
    )
    return records_table(rows, columns)


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


def _title(row: Record) -> str:
    return TITLES[row["network"]]


def _devices(rows: list[Record]) -> str:
    return " / ".join(rows[0]["engine"])


def _by_engine(what: str, form: str, of: str = "") -> Callable[[Record], str]:
    """A cell: what each of PhoneBit's devices reaches, of how many inputs."""

    def cell(row: Record) -> str:
        total = f" of {row[of]:,}" if of else ""
        return " / ".join(f"{engine[what]:{form}}{total}" for engine in row["engine"].values())

    return cell


SIZES: Final[Columns] = (
    ("checkpoint", lambda row: f"{row['checkpoint_bytes'] / 1000:,.0f} kB"),
    (".pbit", lambda row: f"{row['pbit_bytes'] / 1000:,.0f} kB"),
)


def _commands(results: Record) -> str:
    training = results["training"]
    return (
        f"{training['date']}: `{training['command']}`. Compared on {results['date']} with PyTorch "
        f"{results['versions']['torch']}: `{results['command'].strip()}`."
    )
