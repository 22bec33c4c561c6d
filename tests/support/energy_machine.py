"""Machines made of files, and sources made of formulas, for tests of energy measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phonebit.energy.source import EnergySource, Rail, SourceKind


def write_files(root: Path, files: dict[str, object]) -> None:
    """Write small text files below a root, as Linux shows them."""
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


def rapl_zone(root: Path, zone: str, name: str, energy_uj: object, largest: object = 999) -> Path:
    """A zone of powercap; gives its counter's file."""
    folder = f"sys/class/powercap/{zone}"
    values = {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": largest}
    write_files(root, {f"{folder}/{file}": value for file, value in values.items()})
    return root / folder / "energy_uj"


class FormulaSource(EnergySource):
    """A source whose reading is a function of a clock.

    Args:
        kind: of the source.
        reading: of the time, for its only rail.
        clock: the time.
        period_s: pace.
    """

    unit_mj = 0.0

    def __init__(
        self,
        kind: SourceKind,
        reading: Callable[[float], float],
        clock: Callable[[], float],
        period_s: float = 0.01,
    ) -> None:
        super().__init__("formula", "a formula", (Rail("all"),))
        self.kind = kind
        self.period_s = period_s
        self.reading = reading
        self._clock = clock

    def read(self) -> tuple[float, ...]:
        """The formula's value now."""
        return (self.reading(self._clock()),)
