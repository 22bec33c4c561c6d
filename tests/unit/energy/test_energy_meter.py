"""The meter: how long it measures, what it makes of idleness, and sources that hang or freeze."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.energy import EnergyMeter, EnergyResult, meter
from phonebit.energy.measuring import measure
from phonebit.energy.source import EnergyError
from phonebit.errors import InputError
from support.energy_machine import FormulaSource

IDLE_MW = 1000.0
BUSY_MW = 5000.0
FRAME_S = 0.01


class Machine:
    """A clock that only work and naps move, and the energy that flowed meanwhile."""

    def __init__(self) -> None:
        self.now = 100.0
        self.energy_mj = 7e6

    def spend(self, seconds: float, power_mw: float) -> None:
        self.now += seconds
        self.energy_mj += seconds * power_mw

    def work(self) -> None:
        self.spend(FRAME_S, BUSY_MW)

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.spend(seconds, IDLE_MW)


class SteppedMeter:
    """Reads whenever the fake clock goes on: work is its pace."""

    def __init__(self, source: FormulaSource, machine: Machine) -> None:
        self._source = source
        self._machine = machine
        self.start()

    def __enter__(self) -> SteppedMeter:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        counted = [rail.counted for rail in self._source.rails]
        self._trace = _runtime.EnergyTrace(counted, self._source.kind == "counter")
        self.read()

    def read(self) -> None:
        self._trace.add(self._machine.now, self._source.read())

    def peek(self) -> _runtime.EnergySpan:
        self.read()
        return self._trace.span()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The clock under which the meter works."""
    made = Machine()
    monkeypatch.setattr(meter, "time", made)
    return made


def meter_of(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, source: FormulaSource, **lengths: float
) -> EnergyMeter:
    stepped = SteppedMeter(source, machine)
    monkeypatch.setattr(meter, "open_meter", lambda _source: stepped)
    spend = machine.spend

    def spend_and_read(seconds: float, power_mw: float) -> None:
        spend(seconds, power_mw)
        stepped.read()

    monkeypatch.setattr(machine, "spend", spend_and_read)
    return EnergyMeter(source, **lengths)


def counter_in_steps(machine: Machine, update_s: float) -> FormulaSource:
    """The machine's energy as a counter shows it that is updated so often."""
    shown = {"tick": -1.0, "energy_mj": 0.0}

    def reading(now: float) -> float:
        tick = math.floor(now / update_s + 1e-6)
        if tick != shown["tick"]:
            shown.update(tick=tick, energy_mj=machine.energy_mj)
        return shown["energy_mj"]

    return FormulaSource("counter", reading, lambda: machine.now)


def test_energy_a_frame_and_above_idle(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    source = counter_in_steps(machine, 0.01)
    result = meter_of(machine, monkeypatch, source).measure(machine.work, frames_each=4)
    assert result.frames == 4 * round(result.window_s / FRAME_S)
    assert result.window_s == pytest.approx(3.0, abs=0.02)
    assert result.mean_mw == pytest.approx(BUSY_MW, rel=0.01)
    assert result.mj_per_frame == pytest.approx(BUSY_MW * FRAME_S / 4, rel=0.01)
    assert result.fps == pytest.approx(4 / FRAME_S)
    assert result.fps_per_watt == pytest.approx(1e3 * result.fps / result.mean_mw)
    assert result.idle_mw == pytest.approx(IDLE_MW, rel=0.02)
    assert result.net_mw == pytest.approx(BUSY_MW - IDLE_MW, rel=0.02)
    assert result.net_mj_per_frame == pytest.approx((BUSY_MW - IDLE_MW) * FRAME_S / 4, rel=0.02)
    assert result.net_uncertainty is not None
    assert result.net_uncertainty > result.uncertainty


@pytest.mark.parametrize("update_s", [0.01, 0.1, 0.3])
def test_the_window_grows_until_a_step_is_a_hundredth(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, update_s: float
) -> None:
    source = counter_in_steps(machine, update_s)
    result = meter_of(machine, monkeypatch, source).measure(machine.work, idle=False)
    assert result.uncertainty <= 0.01
    assert max(3.0, 100 * update_s) <= result.window_s <= max(3.1, 100 * update_s + 1.0)
    assert result.resolution_mj == pytest.approx(BUSY_MW * update_s, rel=0.05)
    assert result.mj_per_frame == pytest.approx(BUSY_MW * FRAME_S, rel=0.01)
    assert (result.idle_mw, result.net_mw, result.net_fps_per_watt) == (None, None, None)


def test_idleness_is_measured_less_finely(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = meter_of(machine, monkeypatch, counter_in_steps(machine, 0.2)).measure(machine.work)
    assert result.idle is not None
    assert 0.01 < result.idle.uncertainty <= 0.03
    assert result.idle.window_s < result.window_s / 2
    assert result.idle_mw == pytest.approx(IDLE_MW, rel=0.03)


def test_the_window_ends_in_any_case_and_the_result_says_how_fine_it_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = counter_in_steps(machine, 2.0)
    measured = meter_of(machine, monkeypatch, source, longest_s=20.0)
    result = measured.measure(machine.work, idle=False)
    assert result.window_s == pytest.approx(20.0, abs=0.1)
    assert result.uncertainty == pytest.approx(0.1, rel=0.15)
    assert "% by resolution" in result.lines()[0]


def test_a_source_that_freezes_ends_the_measurement(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = counter_in_steps(machine, 0.01).reading
    frozen_mj = running(machine.now) + BUSY_MW
    source = FormulaSource("counter", lambda t: min(running(t), frozen_mj), lambda: machine.now)
    begin = machine.now
    with pytest.raises(EnergyError, match="has stopped"):
        meter_of(machine, monkeypatch, source).measure(machine.work, idle=False)
    assert machine.now - begin < 15


@pytest.mark.parametrize("kind", ["counter", "power"])
def test_a_source_that_never_moves_ends_the_measurement(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    source = FormulaSource(kind, lambda t: 7.0, lambda: machine.now)
    measured = meter_of(machine, monkeypatch, source, longest_s=5.0)
    with pytest.raises(EnergyError, match=r"nothing new.*within 5 s"):
        measured.measure(machine.work, idle=False)


def test_work_that_cannot_be_told_from_idleness(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = counter_in_steps(machine, 0.01)
    measured = meter_of(machine, monkeypatch, source)
    result = measured.measure(lambda: machine.spend(FRAME_S, IDLE_MW))
    assert result.net_mj_per_frame is None
    assert result.to_dict()["net_fps_per_watt"] is None
    assert "cannot be told from it" in result.lines()[1]


def test_one_call_longer_than_the_window_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FormulaSource("power", lambda t: 1000 + t, lambda: machine.now)
    measured = meter_of(machine, monkeypatch, source, seconds=1.0, longest_s=2.0)
    result = measured.measure(lambda: machine.spend(10.0, 0.0), idle=False)
    assert (result.frames, result.window_s) == (1, 10.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 61.0, math.nan])
def test_lengths_out_of_range_are_refused(seconds: float) -> None:
    source = FormulaSource("power", lambda t: t, time.perf_counter)
    with pytest.raises(InputError, match="length of the measurement"):
        EnergyMeter(source, seconds)


def test_the_thread_samples_power_at_its_pace() -> None:
    begin = time.perf_counter()
    source = FormulaSource("power", lambda t: 1000 * (1 + t - begin), time.perf_counter, 0.005)
    with meter.open_meter(source) as opened:
        opened.start()
        time.sleep(0.3)
        span = opened.peek()
    end_s = span.window_s
    assert 0.3 <= end_s < 3.0
    assert span.changes > 10  # 60 on an idle machine
    assert span.energy_mj == pytest.approx(1000 * end_s + 500 * end_s**2, rel=0.02)


def test_a_source_that_hangs_does_not_hang_the_caller() -> None:
    forever = threading.Event()
    source = FormulaSource("power", lambda t: float(forever.wait(60)), time.perf_counter)
    begin = time.perf_counter()
    silent = pytest.raises(EnergyError, match=r"formula: the source does not answer.*0\.1 s")
    with silent, _runtime.EnergyMeter(source, 0.1) as opened:
        opened.start()
    assert time.perf_counter() - begin < 5
    forever.set()


SLEEPS = """
import time
from phonebit import DeviceError, _runtime
from support.energy_machine import FormulaSource
source = FormulaSource("power", lambda t: time.sleep({}) or 1.0, time.perf_counter)
try:
    with _runtime.EnergyMeter(source, 0.01) as meter:
        meter.start()
except DeviceError as error:
    print(error)
"""


@pytest.mark.parametrize("seconds", [0.05, 60])
def test_a_process_ends_while_a_source_hangs_or_answers_late(seconds: float) -> None:
    code, paths = SLEEPS.format(seconds), {"PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | paths,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "does not answer" in ran.stdout


def test_an_error_of_the_source_reaches_the_caller() -> None:
    unplugged = threading.Event()

    def reading(_now: float) -> float:
        if unplugged.is_set():
            raise EnergyError("gone", where="here")
        return 1.0

    source = FormulaSource("power", reading, time.perf_counter, 0.001)
    with meter.open_meter(source) as opened:
        opened.start()
        unplugged.set()
        with pytest.raises(EnergyError, match="here: gone"):
            opened.peek()


def test_a_network_is_measured_by_the_source_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FormulaSource("power", lambda t: 1000 + math.sin(t), time.perf_counter, 0.002)
    asked = []

    def choose(device: str, findings: object, wanted: str) -> tuple[FormulaSource, str]:
        asked.append((device, wanted))
        return source, "it sees cpu:avx2"

    monkeypatch.setattr("phonebit.energy.measuring.choose_source", choose)
    monkeypatch.setattr(meter, "WARM_UP_S", 0.0)
    batches = []
    network = SimpleNamespace(
        device="cpu:avx2", forward=lambda x: (batches.append(len(x["x"])), time.sleep(0.001))
    )
    inputs = {"x": np.zeros((3, 1, 1, 1), np.uint8)}
    result = measure(network, inputs, seconds=0.5, idle=False)  # type: ignore[arg-type]
    assert asked == [("cpu:avx2", "auto")]
    assert isinstance(result, EnergyResult)
    assert result.frames == 3 * (len(batches) - 1)  # one warms up
    assert result.mean_mw == pytest.approx(1000, rel=0.01)
    assert result.to_dict()["chosen"] == "it sees cpu:avx2"


def test_device_arrays_are_refused() -> None:
    network = SimpleNamespace(device="gpu:0 X", forward=lambda x: None)
    with pytest.raises(InputError, match="NumPy arrays"):
        measure(network, object())  # type: ignore[arg-type]
