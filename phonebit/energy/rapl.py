"""RAPL: energy counters of Intel and AMD processors, as Linux shows them under powercap.

Each package is a zone ``intel-rapl:N`` (AMD's too) with parts ``intel-rapl:N:M``. Counted are the
packages and, where there is such a part, their memory ("dram"), which no package contains. Other
parts (core, uncore) lie within a package; "psys" contains packages; ``intel-rapl-mmio`` shows a
package a second time. Unit of the files: uJ; the processor counts in steps of 15 or 61 uJ and
updates about every millisecond.
"""

from __future__ import annotations

import re
from pathlib import Path

from phonebit.energy.source import EnergyError, EnergySource, GrowingCounter, Rail
from phonebit.energy.sysfs import read_integer, read_text, readable_text

FOLDER = "sys/class/powercap"
CLOSED_HINT = (
    "since Linux 5.10 only root may read it (it leaks secrets, CVE-2020-8694): run as root, or "
    "`sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj` until the next start"
)
_ZONE = re.compile(r"intel-rapl:(\d+)(?::(\d+))?")


class RaplSource(EnergySource):
    """Packages and their memory.

    Args:
        zones: folder of each zone, by the name of its rail.

    Raises:
        EnergyError: if a zone's counter cannot be read.
    """

    kind = "counter"
    unit_mj = 1e-3
    period_s = 0.02

    def __init__(self, zones: dict[str, Path]) -> None:
        names = tuple(Rail(name) for name in zones)
        super().__init__("rapl", "processor packages and memory, RAPL counters", names)
        self._files = [zone / "energy_uj" for zone in zones.values()]
        self._counters = [
            GrowingCounter(str(zone / "energy_uj"), _modulus_uj(zone)) for zone in zones.values()
        ]
        self.read()

    def read(self) -> tuple[float, ...]:
        """Energy of every zone, mJ."""
        return tuple(
            counter.advance(read_integer(file, CLOSED_HINT)) * 1e-3
            for file, counter in zip(self._files, self._counters, strict=True)
        )


def find_rapl(root: Path) -> list[EnergySource]:
    """The source of this machine.

    Args:
        root: of the file system.

    Raises:
        EnergyError: if there is none, or it may not be read.
    """
    folder = root / FOLDER
    zones: dict[str, Path] = {}
    for zone in sorted(folder.glob("intel-rapl:*")):
        match = _ZONE.fullmatch(zone.name)
        if match is None:
            continue
        name = read_text(zone / "name")
        if match[2] is None and name.startswith("package"):
            zones[name] = zone
        elif match[2] is not None and name == "dram":
            parent = readable_text(folder / f"intel-rapl:{match[1]}" / "name")
            if parent.startswith("package"):
                zones[f"{parent}/dram"] = zone
    if not zones:
        raise EnergyError(
            "no package zone",
            where=str(folder),
            expected="intel-rapl:*",
            hint="virtual machines have none; elsewhere: modprobe intel_rapl_msr",
        )
    return [RaplSource(zones)]


def _modulus_uj(zone: Path) -> int | None:
    """Values of a zone's counter; None where it does not say: then a wrap is an error."""
    file = zone / "max_energy_range_uj"
    largest = read_integer(file) if file.exists() else 0
    return largest + 1 if largest > 0 else None
