"""The results page's section on accuracy, from results/accuracy.json."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.records import read_results

TITLES = {
    "vgg_small": "VGG-small",
    "alexnet_small": "AlexNet-small",
    "resnet18_small": "ResNet-18-small",
}


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    engines = row["engine"].values()
    accuracies = " / ".join(f"{engine['accuracy']:.2%}" for engine in engines)
    equal = " / ".join(
        f"{engine['pictures_with_equal_logits']:,} of {row['pictures']:,}" for engine in engines
    )
    return (
        TITLES[row["network"]],
        f"{row['accuracy_of_float_twin']:.2%}",
        f"{row['accuracy_in_torch']:.2%}",
        accuracies,
        equal,
        f"{row['checkpoint_bytes'] / 1000:.0f} kB",
        f"{row['pbit_bytes'] / 1000:.0f} kB",
    )


def section() -> str:
    """Markdown: what the networks are, one table, the commands."""
    results = read_results("accuracy.json")
    training, rows = results["training"], results["networks"]
    devices = " / ".join(rows[0]["engine"])
    head = (
        "network",
        "float twin, PyTorch",
        "binary, PyTorch",
        f"binary, PhoneBit ({devices})",
        "equal logits",
        "checkpoint",
        ".pbit",
    )
    lines = [
        "## Accuracy",
        "",
        f"Fashion-MNIST, {rows[0]['pictures']:,} test images. Float twins have the same layers "
        "with full-precision weights and ReLU. *Equal logits*: images for which all ten are "
        "equal to PyTorch's to the last bit.",
        "",
        markdown_table(head, map(_row, rows)),
        "",
        f"Trained on {training['device']} in {training['seconds'] / 60:.1f} minutes, all six, "
        f"{training['date']}: `{training['command']}`. Compared on {results['date']} with PyTorch "
        f"{results['versions']['torch']}: `{results['command'].strip()}`. "
        "Recipe: `training/fashion_mnist_torch/README.md`.",
    ]
    return "\n".join(lines) + "\n"
