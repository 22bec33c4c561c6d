"""Options of ``phonebit collect`` and ``phonebit android collect``, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phonebit.cli.console import output
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.planner.measure.collect import CollectionReport
    from phonebit.planner.measure.orders import CollectionPlan

LayersOption = Annotated[
    int, typer.Option("--samples", min=1, metavar="N", help="Number of random layers.")
]
ThreadCountsOption = Annotated[
    str, typer.Option("--threads", metavar="N,N", help="CPU thread counts to measure.")
]
CutsOption = Annotated[
    int, typer.Option("--cuts", min=0, metavar="N", help="Splits per layer and dimension.")
]
TurnsOption = Annotated[
    int,
    typer.Option(
        "--turns", min=1, metavar="N", help="Interleaved repetitions; the smallest time counts."
    ),
]
RoundsOption = Annotated[
    int,
    typer.Option(
        "--rounds",
        min=1,
        metavar="N",
        help="Repetitions of the whole run; the smallest time counts.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Random seed of layers and weights.")
]


def collection_plan(
    layers: int, threads: str, cuts: int, turns: int, rounds: int, seed: int
) -> CollectionPlan:
    """What the options ask for.

    Raises:
        InputError: ``threads`` are no numbers.
    """
    from phonebit.planner.measure.orders import CollectionPlan

    return CollectionPlan(layers, _thread_counts(threads), cuts, turns, rounds, seed)


def _thread_counts(text: str) -> tuple[int, ...]:
    from phonebit.errors import InputError

    try:
        counts = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise InputError("--threads", expected="numbers from 1 on, as 1,2", got=repr(text))
    return counts


def print_collection(path: Path, report: CollectionReport) -> None:
    """What a collection did, for people."""
    console = output()
    console.print(
        f"{report.measured} layers measured, {report.known} known before: {escape(str(path))}",
        soft_wrap=True,
    )
    if report.missing:
        console.print(f"[yellow]orders without a result yet: {report.missing}[/]")
    for layer, reason in report.failed.items():
        console.print(f"[yellow]failed[/] {escape(layer)}: {escape(reason)}", soft_wrap=True)
