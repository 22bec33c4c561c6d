"""INA2xx and INA3221: shunt monitors on boards (Jetson and others), through Linux's hwmon.

A chip is a folder ``/sys/class/hwmon/hwmon*`` whose ``name`` starts with "ina". Power of a channel
is ``powerN_input`` (uW), or else ``inN_input`` (mV) times ``currN_input`` (mA). A board whose
input is metered has a rail for it, of which the others are parts: then only that one is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from phonebit.energy.source import EnergyError, EnergySource, Rail
from phonebit.energy.sysfs import read_integer, readable_text

FOLDER = "sys/class/hwmon"
INPUT_RAILS = ("VDD_IN", "POM_5V_IN")
"""Labels of a whole module's supply on Jetson boards."""
_CHIP = re.compile(r"ina(2\d\d|3221)\w*")
_CURRENT = re.compile(r"curr(\d+)_input")
_POWER = re.compile(r"power(\d+)_input")
_Reader = Callable[[], float]


class InaSource(EnergySource):
    """All channels of all chips.

    Args:
        readers: function that gives a channel's mW, by the name of its rail.

    Raises:
        EnergyError: if a channel cannot be read.
    """

    kind = "power"
    unit_mj = 0.0
    period_s = 0.01

    def __init__(self, readers: dict[str, _Reader]) -> None:
        whole = [name for name in readers if name in INPUT_RAILS]
        rails = tuple(Rail(name, not whole or name in whole) for name in readers)
        super().__init__("ina", "supply rails of the board, INA shunt monitors, sampled", rails)
        self._readers = list(readers.values())
        self.read()

    def read(self) -> tuple[float, ...]:
        """Power of every channel, mW."""
        return tuple(read() for read in self._readers)


def find_ina(root: Path) -> list[EnergySource]:
    """The source of this board.

    Args:
        root: of the file system.

    Raises:
        EnergyError: if there is none, or it cannot be read.
    """
    readers: dict[str, _Reader] = {}
    for chip in sorted((root / FOLDER).glob("hwmon*")):
        if _CHIP.fullmatch(readable_text(chip / "name")):
            for channel, reader in _channels(chip).items():
                label = readable_text(chip / f"in{channel}_label")
                name = label or f"{chip.name}/{channel}"
                readers[f"{chip.name}/{name}" if name in readers else name] = reader
    if not readers:
        raise EnergyError("no INA2xx or INA3221 chip", where=f"{root / FOLDER}/hwmon*/name")
    return [InaSource(readers)]


def _channels(chip: Path) -> dict[int, _Reader]:
    """Readers by channel. A current without a voltage is no channel (INA3221 sums currents)."""
    powers = _numbers(chip, _POWER)
    channels: dict[int, _Reader] = {
        channel: partial(_power_mw, chip / f"power{channel}_input") for channel in powers
    }
    for channel in _numbers(chip, _CURRENT):
        voltage = chip / f"in{channel}_input"
        if channel not in channels and voltage.exists():
            current = chip / f"curr{channel}_input"
            channels[channel] = partial(_product_mw, voltage, current)
    return dict(sorted(channels.items()))


def _numbers(chip: Path, pattern: re.Pattern[str]) -> list[int]:
    matches = (pattern.fullmatch(file.name) for file in chip.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def _power_mw(file: Path) -> float:
    return read_integer(file) * 1e-3


def _product_mw(voltage: Path, current: Path) -> float:
    return read_integer(voltage) * read_integer(current) * 1e-3
