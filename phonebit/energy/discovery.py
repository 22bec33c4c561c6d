"""Which sources exist on this machine, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phonebit.compiled import load_runtime
from phonebit.energy.nvml import find_nvml
from phonebit.energy.source import EnergyError, EnergySource, Rail

if TYPE_CHECKING:
    from phonebit import _runtime


class SysfsSource(EnergySource):
    """One that the runtime has found: RAPL, INA monitors, ODPM, batteries (runtime/energy)."""

    def __init__(self, source: _runtime.EnergySource) -> None:
        rails = tuple(Rail(name, counted) for name, counted in source.rails)
        super().__init__(source.name, source.description, rails)
        self.kind, self.unit_mj, self.period_s = source.kind, source.unit_mj, source.period_s
        self._source = source

    def read(self) -> tuple[float, ...]:
        """Energy (mJ) or power (mW) of every rail."""
        return self._source.read()


@dataclass(frozen=True)
class Finding:
    """Sources of one kind.

    Attributes:
        kind: "nvml", "rapl", "ina", "odpm" or "battery".
        sources: those that can be read now.
        absent: why there are none; "" where there are some.
    """

    kind: str
    sources: Sequence[EnergySource]
    absent: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "kind": self.kind,
            "sources": [
                {
                    "name": source.name,
                    "description": source.description,
                    "kind": source.kind,
                    "rails": [rail.name for rail in source.rails],
                }
                for source in self.sources
            ],
            "absent": self.absent,
        }


def discover(root: str | Path = "/") -> list[Finding]:
    """Look for every kind of source.

    Args:
        root: of the file system in which to look; NVML is asked wherever it is.

    Returns:
        A finding for each kind, those first that measure as little as possible besides the
        processor.

    Raises:
        DeviceError: if the compiled module cannot be loaded.
    """
    findings = [_look_for_nvml()]
    for kind, sources, absent in load_runtime().discover_energy(str(root)):
        findings.append(Finding(kind, [SysfsSource(source) for source in sources], absent))
    return findings


def _look_for_nvml() -> Finding:
    try:
        return Finding("nvml", find_nvml())
    except EnergyError as error:
        return Finding("nvml", [], str(error))
