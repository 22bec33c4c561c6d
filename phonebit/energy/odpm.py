"""ODPM: the power meters on the supply chips of Pixel phones.

Each ``/sys/bus/iio/devices/iio:device*/energy_value`` holds a time stamp and a line a rail,
``CH3(T=473848)[S2M_VDD_CPUCL2], 28071872``: uJ since the phone started. Older phones write
``NAME, number``. Rails are outputs and branches beside each other: their sum is the energy of all
that is metered, which is less than the battery gives.
"""

from __future__ import annotations

import re
from pathlib import Path

from phonebit.energy.source import EnergyError, EnergySource, GrowingCounter, Rail
from phonebit.energy.sysfs import read_text

FOLDER = "sys/bus/iio/devices"
CLOSED_HINT = "Android lets only root and its own services read it: `adb root` on a userdebug build"
_LINE = re.compile(r"(?:CH\d+(?:\(T=\d+\))?)?\[?([^\[\],=]+)\]?\s*,\s*(\d+)")


class OdpmSource(EnergySource):
    """All rails of all meters.

    Args:
        files: ``energy_value`` of each meter.

    Raises:
        EnergyError: if one cannot be read or is of another form.
    """

    kind = "counter"
    unit_mj = 1e-3
    period_s = 0.05

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self._counters = {
            (file, name): GrowingCounter(f"{file}, rail {name}", None)
            for file in files
            for name in _read_meter(file)
        }
        rails = tuple(Rail(name) for _, name in self._counters)
        super().__init__("odpm", "supply rails, on-device power meter (ODPM)", rails)
        self.read()

    def read(self) -> tuple[float, ...]:
        """Energy of every rail, mJ."""
        meters = {file: _read_meter(file) for file in self._files}
        energies = []
        for (file, name), counter in self._counters.items():
            if name not in meters[file]:
                raise EnergyError(f"rail {name} has vanished", where=str(file))
            energies.append(counter.advance(meters[file][name]) * 1e-3)
        return tuple(energies)


def find_odpm(root: Path) -> list[EnergySource]:
    """The source of this phone.

    Args:
        root: of the file system.

    Raises:
        EnergyError: if there is none, or it may not be read.
    """
    files = sorted((root / FOLDER).glob("iio:device*/energy_value"))
    if not files:
        raise EnergyError("no power meter", where=f"{root / FOLDER}/iio:device*/energy_value")
    return [OdpmSource(files)]


def _read_meter(file: Path) -> dict[str, int]:
    """Energy by rail, uJ."""
    rails: dict[str, int] = {}
    for line in read_text(file, CLOSED_HINT).splitlines():
        text = line.strip()
        if text.startswith("t=") or text.isdigit() or not text:  # the time stamp
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise EnergyError(
                "a line that is no rail",
                where=str(file),
                expected="CH<n>(T=<ms>)[<rail>], <uJ>",
                got=repr(text[:60]),
            )
        rails[match[1].strip()] = int(match[2])
    if not rails:
        raise EnergyError("no rail in it", where=str(file))
    return rails
