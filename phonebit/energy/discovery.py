"""Which sources exist on this machine, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phonebit.energy.battery import find_battery
from phonebit.energy.ina import find_ina
from phonebit.energy.nvml import find_nvml
from phonebit.energy.odpm import find_odpm
from phonebit.energy.rapl import find_rapl
from phonebit.energy.source import EnergyError, EnergySource


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
        A finding for each kind, those first that measure the least beside the processor.
    """
    base = Path(root)
    return [
        _look("nvml", find_nvml),
        _look("rapl", lambda: find_rapl(base)),
        _look("ina", lambda: find_ina(base)),
        _look("odpm", lambda: find_odpm(base)),
        _look("battery", lambda: find_battery(base)),
    ]


def _look(kind: str, find: Callable[[], Sequence[EnergySource]]) -> Finding:
    try:
        return Finding(kind, find())
    except EnergyError as error:
        return Finding(kind, [], str(error))
