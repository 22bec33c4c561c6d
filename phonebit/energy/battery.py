"""Batteries of phones and laptops: what flows out of them while nothing charges them.

``/sys/class/power_supply/*`` of type Battery. Power is ``power_now`` (uW), or ``current_now`` (uA)
times ``voltage_now`` (uV), sampled. Whether a current out of the battery is negative differs from
phone to phone, so the sign is not used: ``status`` must be Discharging at every reading, and
the magnitude counts. Where only the charge is known (``charge_counter``, ``charge_now``: uAh, or
``energy_now``: uWh) its differences count: large steps, so that a measurement takes minutes.

A battery feeds the whole device, screen and radio included. Fuel gauges average over their last
seconds: measure long.
"""

from __future__ import annotations

from pathlib import Path

from phonebit.energy.source import EnergyError, EnergySource, Rail
from phonebit.energy.sysfs import read_integer, read_text, readable_text

FOLDER = "sys/class/power_supply"
MJ_PER_UWH = 3.6
LEAST_MW = 10.0
"""No device that runs a network draws less; such a number is in another unit than the kernel's
rules say (some phones write mA instead of uA)."""
CHARGES = ("charge_counter", "charge_now")
UNPLUG = "unplug the charger (adb works over Wi-Fi), wait until the status is Discharging"


class BatteryPowerSource(EnergySource):
    """Power that batteries give, sampled.

    Args:
        folders: of the batteries.

    Raises:
        EnergyError: if one cannot be read, is not discharging, or is implausible.
    """

    kind = "power"
    unit_mj = 0.0
    period_s = 0.1

    def __init__(self, folders: list[Path]) -> None:
        rails = tuple(Rail(folder.name) for folder in folders)
        super().__init__("battery", "the whole device, from its battery, sampled", rails)
        self._folders = folders
        self.read()

    def read(self) -> tuple[float, ...]:
        """Power out of every battery, mW."""
        return tuple(_power_mw(folder) for folder in self._folders)


class BatteryChargeSource(EnergySource):
    """Energy that left batteries, from their charge.

    Args:
        folders: of the batteries.

    Raises:
        EnergyError: if one cannot be read or is not discharging.
    """

    kind = "counter"
    period_s = 0.1

    def __init__(self, folders: list[Path]) -> None:
        rails = tuple(Rail(folder.name) for folder in folders)
        super().__init__("battery", "the whole device, from its battery's charge", rails)
        self._folders = folders
        self._last = [_charge(folder) for folder in folders]
        self._totals = [0.0] * len(folders)
        self.unit_mj = max(mj for _, mj in self._last)

    def read(self) -> tuple[float, ...]:
        """Energy that left every battery, mJ."""
        for index, folder in enumerate(self._folders):
            charge, mj_each = _charge(folder)
            self._totals[index] += (self._last[index][0] - charge) * mj_each
            self._last[index] = (charge, mj_each)
        return tuple(self._totals)


def find_battery(root: Path) -> list[EnergySource]:
    """The source of this device.

    Args:
        root: of the file system.

    Raises:
        EnergyError: if there is no battery, it is not discharging, or tells nothing of use.
    """
    batteries = [
        folder
        for folder in sorted((root / FOLDER).glob("*"))
        # A mouse's battery has the scope "Device".
        if readable_text(folder / "type") == "Battery"
        and readable_text(folder / "scope") != "Device"
    ]
    if not batteries:
        raise EnergyError("no battery", where=str(root / FOLDER))
    in_use = [folder for folder in batteries if readable_text(folder / "status") == "Discharging"]
    if not in_use:
        _require_discharging(batteries[0])
    if all(_has_power(folder) for folder in in_use):
        return [BatteryPowerSource(in_use)]
    return [BatteryChargeSource(in_use)]


def _has_power(folder: Path) -> bool:
    product = (folder / "current_now").exists() and (folder / "voltage_now").exists()
    return (folder / "power_now").exists() or product


def _require_discharging(folder: Path) -> None:
    status = read_text(folder / "status")
    if status != "Discharging":
        raise EnergyError(
            "the battery is not what feeds the device",
            where=str(folder / "status"),
            expected="Discharging",
            got=status or "nothing",
            hint=UNPLUG,
        )


def _power_mw(folder: Path) -> float:
    _require_discharging(folder)
    if (folder / "power_now").exists():
        power_mw = abs(read_integer(folder / "power_now")) * 1e-3
    else:
        current_ua = abs(read_integer(folder / "current_now"))
        power_mw = current_ua * abs(read_integer(folder / "voltage_now")) * 1e-9
    if power_mw < LEAST_MW:
        raise EnergyError(
            "implausible power",
            where=str(folder),
            expected=f"{LEAST_MW:g} mW or more: current_now in uA, voltage_now in uV",
            got=f"{power_mw:g} mW",
            hint="this device's kernel uses other units: measure with another source",
        )
    return power_mw


def _charge(folder: Path) -> tuple[int, float]:
    """What is left, and mJ of one unit of it."""
    _require_discharging(folder)
    if (folder / "energy_now").exists():
        return read_integer(folder / "energy_now"), MJ_PER_UWH
    for name in CHARGES:
        if (folder / name).exists():
            volts = read_integer(folder / "voltage_now") * 1e-6
            return read_integer(folder / name), MJ_PER_UWH * volts
    raise EnergyError(
        "the battery tells neither power nor charge",
        where=str(folder),
        expected="power_now, or current_now and voltage_now, or charge_counter and voltage_now",
    )
