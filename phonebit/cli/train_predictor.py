"""``phonebit train-predictor``: a device profile from samples, and how well it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import ForceOption, JsonOption
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.planner.cost_models import TrainingReport
    from phonebit.planner.predict.evaluation import Accuracy


def train_predictor(
    samples: Annotated[
        Path, typer.Argument(metavar="SAMPLES", help="Samples written by `phonebit collect`.")
    ],
    output_path: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="PROFILE", help="A .json file.", show_default="in the cache"
        ),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit the cost models of µLayer, CoDL and Fine-Grained Co-Execution.

    A fifth of the layers is held out to report the accuracy. The cost model
    that is written is fitted on all of them.
    """
    from phonebit.planner.cost_models import train

    with progress("training", None, quiet=as_json) as advance:
        report = train(samples, output_path, replace_any=force, progress=advance)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(output(), report)


def _print(console: Console, report: TrainingReport) -> None:
    for device in report.device:
        console.print(f"[bold]{escape(device)}[/]", soft_wrap=True)
    console.print(
        f"fitted on {report.learnt_from} partitions, tested on {report.tested_with} of other layers"
    )
    console.print(_accuracy_table(report.accuracies))
    for what, refused in (("", report.refused), (" for cuts", report.refused_for_cuts)):
        for choice in refused:
            console.print(
                f"[yellow]rejected by the runtime{what}[/] {escape(choice)}", soft_wrap=True
            )
    for written in report.profiles:
        console.print(f"written: {escape(written)}", soft_wrap=True)


def _accuracy_table(accuracies: Sequence[Accuracy]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("processor", "layers", "predictor"):
        table.add_column(title, no_wrap=True)
    for title in ("parts", "MAPE", "median error", "within 10 %"):
        table.add_column(title, justify="right", no_wrap=True)
    families = sorted(accuracies, key=lambda entry: (entry.processor, entry.threads, entry.family))
    known = ("", "")
    for entry in families:
        threads = f", {entry.threads} threads" if entry.threads else ""
        about = entry.processor + threads, entry.family
        shown = ("" if about[0] == known[0] else about[0], "" if about == known else about[1])
        known = about
        table.add_row(
            *shown,
            entry.predictor,
            f"{entry.samples}",
            f"{entry.mape:.1%}",
            f"{entry.median_error:.1%}",
            f"{entry.within_10:.0%}",
        )
    return table
