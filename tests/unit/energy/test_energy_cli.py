"""``bench --energy`` and ``devices``: what people and programs see."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phonebit.energy import Finding, discover, meter
from support.cli_process import Cli
from support.energy_machine import FormulaSource, rapl_zone

BENCH = ("--runs", 10, "--warmup", 1, "--device", "cpu", "--threads", 1)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without anything but NVML, if that is here."""
    for place in ("phonebit.energy.measuring.discover", "phonebit.energy.discover"):
        monkeypatch.setattr(place, lambda: discover(tmp_path)[1:])
    return tmp_path


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> FormulaSource:
    """A machine whose processor takes 2 W, as sampled."""
    power = FormulaSource("power", lambda t: 2000 + math.sin(1e3 * t), time.perf_counter, 0.001)
    power.name = "rapl"
    monkeypatch.setattr("phonebit.energy.measuring.discover", lambda: [Finding("rapl", [power])])
    monkeypatch.setattr(meter, "WARM_UP_S", 0.0)
    monkeypatch.setattr(meter, "SETTLE_S", 0.0)
    return power


def test_bench_tells_that_there_is_no_source(cli: Cli, tiny_file: Path, empty: Path) -> None:
    done = cli("bench", tiny_file, *BENCH, "--energy")
    assert done.code == 0, done.err
    assert "energy not measured: no source" in done.out
    assert "median" in done.out
    for place in ("powercap", "hwmon", "iio:device", "power_supply"):
        assert place in done.out
    energy = cli("bench", tiny_file, *BENCH, "--energy", "--json").document["energy"]
    assert (energy["measured"], energy["reason"]) == (False, "not measured: no source")
    assert "powercap" in energy["sources"]["rapl"]


def test_bench_refuses_an_absent_source_that_was_asked_for(
    cli: Cli, tiny_file: Path, empty: Path
) -> None:
    text = cli.refused("bench", tiny_file, *BENCH, "--energy", "--energy-source", "rapl")
    assert "'rapl'" in text
    assert "powercap" in text


def test_bench_gives_a_row_of_table_iv(cli: Cli, tiny_file: Path, metered: FormulaSource) -> None:
    options = (*BENCH, "--energy", "--energy-seconds", 0.3)
    energy = cli("bench", tiny_file, *options, "--json", "--no-idle").document["energy"]
    assert energy["measured"] is True
    assert energy["source"] == "rapl"
    assert energy["mean_mw"] == pytest.approx(2000, rel=0.01)
    assert energy["window_s"] >= 0.3
    assert energy["mj_per_frame"] == pytest.approx(energy["energy_mj"] / energy["frames"])
    assert energy["fps_per_watt"] == pytest.approx(1e3 * energy["fps"] / energy["mean_mw"])
    assert energy["idle_mw"] is None
    done = cli("bench", tiny_file, *options)
    assert done.code == 0, done.err
    for text in ("mW", "mJ/frame", "FPS/W", "by resolution", "idle", "source rapl", "samples of"):
        assert text in done.out


def test_bench_without_energy_measures_none(
    cli: Cli, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def discover_nothing() -> list[Finding]:
        raise AssertionError("not asked for")

    monkeypatch.setattr("phonebit.energy.measuring.discover", discover_nothing)
    assert "energy" not in cli("bench", tiny_file, *BENCH, "--json").document


@pytest.mark.parametrize(
    "flags", [("--no-idle",), ("--energy-source", "rapl"), ("--energy-seconds", "2")]
)
def test_bench_refuses_details_of_what_was_not_asked_for(
    cli: Cli, tiny_file: Path, flags: tuple[str, ...]
) -> None:
    assert "--energy" in cli.refused("bench", tiny_file, *flags)


def test_bench_refuses_a_length_out_of_range(
    cli: Cli, tiny_file: Path, metered: FormulaSource
) -> None:
    text = cli.refused("bench", tiny_file, *BENCH, "--energy", "--energy-seconds", 0)
    assert "length of the measurement" in text


def test_devices_list_sources_or_why_there_are_none(cli: Cli, empty: Path) -> None:
    text = cli("devices").out
    assert "energy  no source here" in text
    assert "no package zone" in text
    rapl_zone(empty, "intel-rapl:0", "package-0", 5)
    [rapl] = [
        finding for finding in cli("devices", "--json").document["energy"] if finding["sources"]
    ]
    assert rapl["sources"][0]["name"] == "rapl"
    assert rapl["sources"][0]["rails"] == ["package-0"]
    text = cli("devices").out
    assert "energy  measured by" in text
    assert "(package-0)" in text


def test_import_of_energy_loads_no_vendors_package() -> None:
    code = "import sys, phonebit.energy; print(*{'pynvml', 'pyopencl', 'torch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
