"""``phonebit bench --energy``: what a frame costs, beside how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from phonebit.cli.console import progress
from phonebit.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from phonebit.energy import EnergyError, EnergyResult
    from phonebit.network import Network

LEAST_S = 3.0
"""Length of a measurement unless told otherwise."""

EnergyOption = Annotated[
    bool, typer.Option("--energy", help="Measure energy, too: mW, mJ/frame, FPS/W.")
]
EnergySourceOption = Annotated[
    str | None,
    typer.Option(
        "--energy-source", metavar="NAME", help="A source as `devices` lists them; or auto."
    ),
]
EnergySecondsOption = Annotated[
    float | None,
    typer.Option("--energy-seconds", metavar="S", help=f"Measure so long or longer ({LEAST_S:g})."),
]
IdleOption = Annotated[
    bool | None, typer.Option("--idle/--no-idle", help="Measure the power without work, too (yes).")
]


@dataclass(frozen=True)
class EnergyFlags:
    """What was asked; None: not said.

    Attributes:
        energy: whether to measure.
        source: name, or "auto".
        seconds: least length.
        idle: whether to measure without work, too.
    """

    energy: bool
    source: str | None
    seconds: float | None
    idle: bool | None

    def check(self) -> None:
        """Refuse details of a measurement that was not asked for.

        Raises:
            InputError: if there are any.
        """
        if not self.energy and self != EnergyFlags(False, None, None, None):
            raise InputError("flags for a measurement of energy, but none asked", hint="--energy")


def bench_energy(
    network: Network, inputs: Mapping[str, NDArray[Any]], flags: EnergyFlags, quiet: bool
) -> EnergyResult | EnergyError:
    """Measure, if there is something to measure with.

    Args:
        network: loaded.
        inputs: one batch by input name.
        flags: what was asked.
        quiet: no progress.

    Returns:
        The result; or why there is none, where the choice of the source was left to us.

    Raises:
        EnergyError: if the source that was asked for cannot measure.
        InputError: if the length is out of range.
    """
    from phonebit.energy import EnergyError, measure

    seconds = LEAST_S if flags.seconds is None else flags.seconds
    source = flags.source or "auto"
    with progress("measuring energy", None, quiet=quiet):
        try:
            return measure(network, inputs, seconds, flags.idle is not False, source)
        except EnergyError as error:
            if source != "auto":
                raise
            return error


def energy_document(result: EnergyResult | EnergyError) -> dict[str, Any]:
    """For JSON: the result, or that and why there is none."""
    from phonebit.energy import EnergyResult, NoSourceError

    if isinstance(result, EnergyResult):
        return result.to_dict()
    looked_for = result.looked_for if isinstance(result, NoSourceError) else {}
    return {"measured": False, "reason": result.what, "error": str(result), "sources": looked_for}


def print_energy(console: Console, result: EnergyResult | EnergyError) -> None:
    """For people: the same."""
    from phonebit.energy import EnergyResult, NoSourceError

    if isinstance(result, EnergyResult):
        first, *others = result.lines()
        console.print(f"energy [bold]{escape(first)}[/]", soft_wrap=True)
    elif isinstance(result, NoSourceError):
        console.print("energy [yellow]not measured: no source[/]")
        others = [f"{kind}: {why}" for kind, why in result.looked_for.items()]
    else:
        console.print("energy [yellow]not measured[/]")
        others = [str(result)]
    for line in others:
        console.print(f"       [dim]{escape(line)}[/]", soft_wrap=True)
