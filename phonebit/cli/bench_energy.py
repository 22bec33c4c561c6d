"""``phonebit bench --energy``: what a frame costs, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from phonebit.cli.console import progress
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from phonebit.network import Network

MIN_S = 3.0
"""Length of a measurement unless told otherwise."""


@dataclass(frozen=True)
class EnergyFlags:
    """What was asked; None: not said."""

    energy: Annotated[
        bool, typer.Option("--energy", help="Also measure energy: mW, mJ/frame, FPS/W.")
    ] = False
    energy_source: Annotated[
        str | None,
        typer.Option(
            "--energy-source", metavar="NAME", help="A source listed by `devices`, or auto."
        ),
    ] = None
    energy_seconds: Annotated[
        float | None,
        typer.Option(
            "--energy-seconds",
            metavar="S",
            help="Minimum measuring time.",
            show_default=f"{MIN_S:g}",
        ),
    ] = None
    idle: Annotated[
        bool | None,
        typer.Option("--idle/--no-idle", help="Also measure idle power.", show_default="yes"),
    ] = None

    def check(self) -> None:
        """Refuse details of a measurement that was not asked for.

        Raises:
            InputError: if there are any.
        """
        if not self.energy and self != EnergyFlags():
            raise InputError("flags for a measurement of energy, but none asked", hint="--energy")


def bench_energy(
    network: Network, inputs: Mapping[str, NDArray[Any]], flags: EnergyFlags, quiet: bool
) -> dict[str, Any]:
    """Measure, if there is something to measure with.

    Args:
        network: loaded.
        inputs: one batch by input name.
        flags: what was asked.
        quiet: no progress.

    Returns:
        For JSON: the result; or that and why there is none, where the choice of the source was left
        to us.

    Raises:
        EnergyError: if the source that was asked for cannot measure.
        InputError: if the length is out of range.
    """
    from phonebit.energy import EnergyError, NoSourceError, measure

    seconds = MIN_S if flags.energy_seconds is None else flags.energy_seconds
    source = flags.energy_source or "auto"
    with progress("measuring energy", None, quiet=quiet):
        try:
            return measure(network, inputs, seconds, flags.idle is not False, source).to_dict()
        except EnergyError as error:
            if source != "auto":
                raise
            looked_for = error.looked_for if isinstance(error, NoSourceError) else {}
            reason, text = error.what, str(error)
            return {"measured": False, "reason": reason, "error": text, "sources": looked_for}


def print_energy(console: Console, record: dict[str, Any]) -> None:
    """For people: what ``bench_energy`` gave, here or on a phone."""
    from phonebit.energy import energy_lines

    if record["measured"]:
        first, *others = energy_lines(record)
        console.print(f"energy [bold]{escape(first)}[/]", soft_wrap=True)
    elif record["sources"]:
        console.print(f"energy [yellow]{escape(record['reason'])}[/]")
        others = [f"{kind}: {why}" for kind, why in record["sources"].items()]
    else:
        console.print("energy [yellow]not measured[/]")
        others = [record["error"]]
    for line in others:
        console.print(f"       [dim]{escape(line)}[/]", soft_wrap=True)
