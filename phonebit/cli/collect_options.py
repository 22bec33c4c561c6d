"""Options of ``phonebit collect`` and ``phonebit android collect``, and what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phonebit.cli.console import output
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.planner.measure.collect import CollectionReport
    from phonebit.planner.measure.orders import CollectionPlan


@dataclass(frozen=True)
class CollectFlags:
    """What is to be measured."""

    samples: Annotated[
        int, typer.Option("--samples", min=1, metavar="N", help="Number of random layers.")
    ] = 1000
    threads: Annotated[
        str, typer.Option("--threads", metavar="N,N", help="CPU thread counts to measure.")
    ] = "1"
    cuts: Annotated[
        int, typer.Option("--cuts", min=0, metavar="N", help="Splits per layer and dimension.")
    ] = 3
    turns: Annotated[
        int,
        typer.Option(
            "--turns", min=1, metavar="N", help="Interleaved repetitions; the smallest time counts."
        ),
    ] = 16
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds",
            min=1,
            metavar="N",
            help="Repetitions of the whole run; the smallest time counts.",
        ),
    ] = 1
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Random seed of layers and weights.")
    ] = 0

    def plan(self) -> CollectionPlan:
        """The same for the planner.

        Raises:
            InputError: the thread counts are no numbers.
        """
        from phonebit.planner.measure.orders import CollectionPlan

        counts = _thread_counts(self.threads)
        return CollectionPlan(self.samples, counts, self.cuts, self.turns, self.rounds, self.seed)


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
