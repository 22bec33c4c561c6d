"""An evaluation on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from phonebit.cli.run import device_text
from phonebit.display import escape_markup as escape
from phonebit.evaluation import Evaluation
from phonebit.network import Network

TITLES: Final = {
    "top1": "top-1",
    "top5": "top-5",
    "voc_ap50": "VOC AP50",
    "coco_ap": "COCO AP",
    "coco_ap50": "COCO AP50",
    "coco_ap75": "COCO AP75",
}
WORST: Final = 10
"""Classes and unreadable images that are shown."""


def print_evaluation(console: Console, found: Evaluation, network: Network) -> None:
    """Metrics, the source next to them, the worst classes, what could not be read."""
    evaluated = len(found.images) - len(found.errors)
    device = escape(device_text(network.device, network.isa, network.threads))
    console.print(f"[bold]{escape(found.data)}[/]  {evaluated:,} images  [dim]{device}[/]")
    if evaluated:
        console.print(_metrics(found))
        _print_source(console, found, evaluated)
        _print_classes(console, found)
    _print_errors(console, found)


def _metrics(found: Evaluation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    table.add_column("")
    shown = [name for name in TITLES if name in found.engine]
    for name in shown:
        table.add_column(TITLES[name], justify="right")
    table.add_row(escape(found.file), *(_percent(found.engine[name]) for name in shown))
    if found.source is not None:
        metrics = found.source.metrics
        table.add_row(escape(found.source.name), *(_percent(metrics[name]) for name in shown))
    return table


def _print_source(console: Console, found: Evaluation, evaluated: int) -> None:
    source = found.source
    if source is None:
        return
    what = "best class" if found.task == "classify" else "number of boxes"
    by = source.computed_by
    if source.reason:
        by = f"the reference interpreter: {source.reason}"
    console.print(
        f"  same {what} on {source.same:,} of {evaluated:,} images, outputs differ by at most "
        f"{source.max_abs_difference:.3g}; source computed by {escape(by)}",
        soft_wrap=True,
    )


def _print_classes(console: Console, found: Evaluation) -> None:
    """The classes with the lowest metric."""
    classify = found.task == "classify"
    metric = "top1" if classify else "coco_ap"
    classes = [entry for entry in found.engine["classes"] if entry[metric] < 1]
    worst = sorted(classes, key=lambda entry: entry[metric])[:WORST]
    if not worst:
        return
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    table.add_column("worst classes" if len(classes) > WORST else "class")
    table.add_column("images" if classify else "objects", justify="right")
    for name in ("top1",) if classify else ("voc_ap50", "coco_ap"):
        table.add_column(TITLES[name], justify="right")
    if classify:
        table.add_column("mistaken for")
    for entry in worst:
        label = escape(entry["label"])
        if classify:
            mistaken = escape(_mistaken_text(entry["mistaken_for"]))
            table.add_row(label, f"{entry['images']:,}", _percent(entry["top1"]), mistaken)
        else:
            metrics = (_percent(entry[name]) for name in ("voc_ap50", "coco_ap"))
            table.add_row(label, f"{entry['objects']:,}", *metrics)
    console.print(table)


def _mistaken_text(mistaken: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['label']} {one['images']:,}" for one in mistaken)


def _print_errors(console: Console, found: Evaluation) -> None:
    errors = found.errors
    if not errors:
        return
    console.print(
        f"[red]{len(errors):,} of {len(found.images):,} images could not be read[/], not counted:"
    )
    for one in errors[:WORST]:
        console.print(f"  {escape(one.image)}: {escape(one.error)}", soft_wrap=True)
    if len(errors) > WORST:
        console.print(f"  and {len(errors) - WORST:,} more; --json lists all")


def _percent(value: float) -> str:
    return "-" if value != value else f"{100 * value:.2f} %"
