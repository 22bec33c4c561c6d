"""Sources made of files: every kind on a machine in a folder, and broken ones."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phonebit.energy.discovery import Finding, discover
from phonebit.energy.source import EnergyError, EnergySource
from support.energy_machine import rapl_zone, write_files

BATTERY = "sys/class/power_supply/battery"
METER = "sys/bus/iio/devices/iio:device0/energy_value"


def find(kind: str, root: Path) -> Finding:
    return next(finding for finding in discover(root) if finding.kind == kind)


def source_of(kind: str, root: Path) -> EnergySource:
    [source] = find(kind, root).sources
    return source


def assert_absent(kind: str, root: Path, why: str) -> None:
    finding = find(kind, root)
    assert not finding.sources
    assert re.search(why, finding.absent)


def names(source: EnergySource) -> list[str]:
    return [rail.name for rail in source.rails]


def test_rapl_counts_packages_and_their_memory(tmp_path: Path) -> None:
    first = rapl_zone(tmp_path, "intel-rapl:0", "package-0", 990)
    rapl_zone(tmp_path, "intel-rapl:0:0", "core", 1)
    dram = rapl_zone(tmp_path, "intel-rapl:0:1", "dram", 100)
    second = rapl_zone(tmp_path, "intel-rapl:1", "package-1", 0)
    psys = rapl_zone(tmp_path, "intel-rapl:2", "psys", 0)
    rapl_zone(tmp_path, "intel-rapl:2:0", "dram", 0)
    rapl_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    source = source_of("rapl", tmp_path)
    assert names(source) == ["package-0", "package-0/dram", "package-1"]
    assert source.read() == (0.0, 0.0, 0.0)
    for file, value in ((first, 10), (dram, 150), (second, 7), (psys, 900)):
        file.write_text(str(value))
    # The first wrapped: 990 -> 999, one to 0, then 10.
    assert source.read() == pytest.approx((0.020, 0.050, 0.007))


def test_rapl_without_a_range_cannot_wrap(tmp_path: Path) -> None:
    file = rapl_zone(tmp_path, "intel-rapl:0", "package-0", 50, largest=0)
    source = source_of("rapl", tmp_path)
    file.write_text("60")
    assert source.read() == pytest.approx((0.010,))
    file.write_text("40")
    with pytest.raises(EnergyError, match="went backwards"):
        source.read()


@pytest.fixture
def open_path() -> Iterator[Path]:
    """An empty folder that every user can enter; pytest's are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def everyone() -> Iterator[None]:
    """The rights of a user: root may read files that nobody may."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_rapl_that_only_root_may_read_says_so(open_path: Path) -> None:
    rapl_zone(open_path, "intel-rapl:0", "package-0", 50).chmod(0)
    with everyone():
        assert_absent("rapl", open_path, r"energy_uj: not permitted to read.*5\.10.*root")


def test_a_closed_folder_is_not_an_empty_one(open_path: Path) -> None:
    folder = open_path / "sys/bus/iio/devices"
    folder.mkdir(parents=True)
    folder.chmod(0)
    with everyone():
        assert_absent("odpm", open_path, "iio/devices: not permitted to read.*adb root")
    folder.chmod(0o755)


def test_rapl_that_vanishes_while_it_is_read(tmp_path: Path) -> None:
    file = rapl_zone(tmp_path, "intel-rapl:0", "package-0", 50)
    source = source_of("rapl", tmp_path)
    file.unlink()
    with pytest.raises(EnergyError, match=r"energy_uj: cannot be read: No such file"):
        source.read()


@pytest.mark.parametrize("energy_uj", [-1, 100])
def test_rapl_beyond_its_range_is_refused(tmp_path: Path, energy_uj: int) -> None:
    rapl_zone(tmp_path, "intel-rapl:0", "package-0", energy_uj, largest=99)
    assert_absent("rapl", tmp_path, rf"out of its range .*expected 0 to 99, got {energy_uj}")


@pytest.mark.parametrize("text", ["", "soon", "12.5", "0x10", str(2**64)])
def test_rapl_with_garbage(tmp_path: Path, text: str) -> None:
    rapl_zone(tmp_path, "intel-rapl:0", "package-0", text)
    assert_absent("rapl", tmp_path, r"energy_uj: not a number.*an integer")


def test_odpm_reads_every_rail_of_every_meter(tmp_path: Path) -> None:
    text = "t=473848\nCH0(T=473848)[S10M_VDD_TPU], {}\nCH1(T=473848)[VSYS_PWR_MODEM], 48480309"
    write_files(tmp_path, {METER: text.format(3000)})
    other = METER.replace("device0", "device1")
    write_files(tmp_path, {other: "t=5\nCH0(T=5)[S2S_VDD_G3D], 0"})
    source = source_of("odpm", tmp_path)
    assert names(source) == ["S10M_VDD_TPU", "VSYS_PWR_MODEM", "S2S_VDD_G3D"]
    write_files(tmp_path, {METER: text.format(5500), other: "t=9\nCH0(T=9)[S2S_VDD_G3D], 1000"})
    assert source.read() == pytest.approx((2.5, 0.0, 1.0))


def test_odpm_reads_the_older_form(tmp_path: Path) -> None:
    write_files(tmp_path, {METER: "473848\nPPVAR_VSYS_PWR_DISP, 70\nS1C, 5"})
    source = source_of("odpm", tmp_path)
    assert names(source) == ["PPVAR_VSYS_PWR_DISP", "S1C"]


@pytest.mark.parametrize("text", ["t=1\nCH0(T=1)[A] 5", "t=1\nCH0(T=1)[A], -5", "<html>"])
def test_odpm_with_garbage(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {METER: text})
    assert_absent("odpm", tmp_path, "a line that is no rail")


def test_odpm_with_a_rail_that_vanishes_or_none(tmp_path: Path) -> None:
    write_files(tmp_path, {METER: "t=1\nCH0(T=1)[A], 5"})
    source = source_of("odpm", tmp_path)
    write_files(tmp_path, {METER: "t=2\nCH0(T=2)[B], 5"})
    with pytest.raises(EnergyError, match="rail A has vanished"):
        source.read()
    write_files(tmp_path, {METER: "t=2"})
    with pytest.raises(EnergyError, match="no rail in it"):
        source.read()


def test_ina_prefers_power_and_multiplies_otherwise(tmp_path: Path) -> None:
    chip = "sys/class/hwmon/hwmon3"
    write_files(
        tmp_path,
        {
            f"{chip}/name": "ina226",
            f"{chip}/in1_input": 5000,
            f"{chip}/curr1_input": 200,
            f"{chip}/power1_input": 1_250_000,
            "sys/class/hwmon/hwmon4/name": "ina219",
            "sys/class/hwmon/hwmon4/in0_input": 3,
            "sys/class/hwmon/hwmon4/in1_input": 5000,
            "sys/class/hwmon/hwmon4/curr1_input": 200,
            "sys/class/hwmon/hwmon0/name": "k10temp",
            "sys/class/hwmon/hwmon0/power1_input": 9,
        },
    )
    source = source_of("ina", tmp_path)
    assert names(source) == ["hwmon3/1", "hwmon4/1"]
    assert source.read() == (1250.0, 1000.0)


def jetson(root: Path, labels: list[str]) -> None:
    chip = "sys/class/hwmon/hwmon1"
    write_files(root, {f"{chip}/name": "ina3221", f"{chip}/curr4_input": 99})
    write_files(root, {f"{chip}/in7_label": "sum of shunt voltages"})
    for i, label in enumerate(labels, 1):
        write_files(
            root,
            {
                f"{chip}/in{i}_label": label,
                f"{chip}/in{i}_input": 5000,
                f"{chip}/curr{i}_input": 100 * i,
            },
        )


def test_ina3221_counts_a_modules_input_once(tmp_path: Path) -> None:
    jetson(tmp_path, ["VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"])
    other = "sys/class/hwmon/hwmon0"
    write_files(tmp_path, {f"{other}/name": "ina226", f"{other}/power1_input": 1_250_000})
    source = source_of("ina", tmp_path)
    assert [(rail.name, rail.counted) for rail in source.rails] == [
        ("hwmon0/1", False),
        ("VDD_IN", True),
        ("VDD_CPU_GPU_CV", False),
        ("VDD_SOC", False),
    ]
    assert source.read() == (1250.0, 500.0, 1000.0, 1500.0)


def test_ina3221_without_an_input_rail_sums_all(tmp_path: Path) -> None:
    jetson(tmp_path, ["VDD_GPU_SOC", "VDD_CPU_CV"])
    assert all(rail.counted for rail in source_of("ina", tmp_path).rails)


def test_ina_with_garbage(tmp_path: Path) -> None:
    jetson(tmp_path, ["VDD_IN"])
    write_files(tmp_path, {"sys/class/hwmon/hwmon1/curr1_input": "n/a"})
    assert_absent("ina", tmp_path, r"curr1_input: not a number")


def phone(root: Path, status: str = "Discharging", **values: object) -> None:
    write_files(root, {f"{BATTERY}/type": "Battery", f"{BATTERY}/status": status})
    write_files(root, {f"{BATTERY}/{name}": value for name, value in values.items()})


@pytest.mark.parametrize("sign", [1, -1])
def test_battery_ignores_the_sign_of_the_current(tmp_path: Path, sign: int) -> None:
    phone(tmp_path, current_now=sign * 500_000, voltage_now=4_000_000)
    write_files(tmp_path, {"sys/class/power_supply/usb/type": "USB"})
    source = source_of("battery", tmp_path)
    assert (source.kind, source.read()) == ("power", pytest.approx((2000.0,)))


def test_battery_with_power_now(tmp_path: Path) -> None:
    phone(tmp_path, power_now=9_500_000, voltage_now=12_000_000)
    assert source_of("battery", tmp_path).read() == (9500.0,)


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", ""])
def test_battery_that_does_not_discharge_measures_nothing(tmp_path: Path, status: str) -> None:
    phone(tmp_path, status, current_now=500_000, voltage_now=4_000_000)
    assert_absent("battery", tmp_path, r"status: .*expected Discharging.*unplug")


def test_battery_whose_charger_comes_meanwhile(tmp_path: Path) -> None:
    phone(tmp_path, current_now=500_000, voltage_now=4_000_000)
    source = source_of("battery", tmp_path)
    phone(tmp_path, "Charging")
    with pytest.raises(EnergyError, match="got Charging"):
        source.read()


def test_battery_in_milliamperes_is_refused(tmp_path: Path) -> None:
    phone(tmp_path, current_now=500, voltage_now=4_000_000)
    assert_absent("battery", tmp_path, r"implausible power.*got 2 mW")


def test_battery_with_a_charge_only(tmp_path: Path) -> None:
    phone(tmp_path, charge_counter=3_000_000, voltage_now=4_000_000)
    source = source_of("battery", tmp_path)
    assert (source.kind, source.unit_mj) == ("counter", pytest.approx(14.4))
    phone(tmp_path, charge_counter=2_999_000)
    assert source.read() == pytest.approx((14_400.0,))  # 1 mAh at 4 V


def test_battery_with_an_energy_only(tmp_path: Path) -> None:
    phone(tmp_path, energy_now=50_000)
    source = source_of("battery", tmp_path)
    phone(tmp_path, energy_now=49_000)
    assert source.read() == pytest.approx((3600.0,))


def test_battery_that_is_closed_is_not_absent(open_path: Path) -> None:
    phone(open_path, power_now=9_500_000)
    write_files(open_path, {"sys/class/power_supply/usb/type": "USB"})
    (open_path / BATTERY / "type").chmod(0)
    with everyone():
        assert_absent("battery", open_path, "battery/type: not permitted to read.*adb shell")


def test_battery_that_tells_nothing_and_a_mouses(tmp_path: Path) -> None:
    phone(tmp_path, scope="Device", power_now=9_500_000)
    assert_absent("battery", tmp_path, "no battery")
    phone(tmp_path, scope="System")
    (tmp_path / BATTERY / "power_now").unlink()
    assert_absent("battery", tmp_path, "neither power nor charge")


def test_an_empty_machine_has_no_source_and_says_what_was_looked_for(tmp_path: Path) -> None:
    found = {finding.kind: finding for finding in discover(tmp_path)}
    assert list(found) == ["nvml", "rapl", "ina", "odpm", "battery"]
    places = {"rapl": "powercap", "ina": "hwmon", "odpm": "iio", "battery": "power_supply"}
    for kind, place in places.items():
        assert not found[kind].sources
        assert str(tmp_path) in found[kind].absent
        assert place in found[kind].absent
