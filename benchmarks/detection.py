"""The results page's section on detection, from results/detection.json."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.records import read_results

TITLES = {
    "yolov2_tiny_quarter": "YOLOv2-Tiny, a quarter of the filters",
    "yolov2_tiny_half": "YOLOv2-Tiny, half of the filters",
    "yolov2_tiny": "YOLOv2-Tiny, as in the paper",
}


def _row(row: dict[str, Any], training: dict[str, Any]) -> tuple[str, ...]:
    engines = row["engine"].values()
    name = row["network"]
    return (
        TITLES[name],
        f"{row['map_in_torch']:.2%}",
        " / ".join(f"{engine['map']:.2%}" for engine in engines),
        " / ".join(f"{e['scenes_with_equal_outputs']:,} of {row['scenes']:,}" for e in engines),
        f"{row['checkpoint_bytes'] / 1000:,.0f} kB",
        f"{row['pbit_bytes'] / 1000:,.0f} kB",
        f"{training['steps'][name]:,} in {training['seconds'][name] / 60:.1f} min",
    )


def section() -> str:
    """Markdown: what the scenes are, one table, the commands."""
    results = read_results("detection.json")
    training, rows = results["training"], results["networks"]
    devices = " / ".join(rows[0]["engine"])
    head = (
        "network",
        "mAP, PyTorch",
        f"mAP, PhoneBit ({devices})",
        "equal outputs",
        "checkpoint",
        ".pbit",
        "training steps",
    )
    lines = [
        "## Detection",
        "",
        f"{rows[0]['scenes']:,} test scenes of 416x416 pixels with {rows[0]['garments']:,} "
        "garments of Fashion-MNIST's test images on clutter; ten classes; mean average precision "
        "at an overlap of 0.5, as PASCAL VOC measures. *Equal outputs*: scenes for which all "
        "12,675 numbers of the head are equal to PyTorch's to the last bit.",
        "",
        markdown_table(head, (_row(row, training) for row in rows)),
        "",
        f"Trained on {training['device']}, {training['scenes']:,} scenes, {training['date']}: "
        f"`{training['command']}`. Compared on {results['date']} with PyTorch "
        f"{results['versions']['torch']}: `{results['command']}`. "
        "Scenes and recipe: `training/garment_scenes/README.md`.",
    ]
    return "\n".join(lines) + "\n"
