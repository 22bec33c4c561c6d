"""Measurements of any kind wait until the device is undisturbed, and not for ever."""

from __future__ import annotations

import pytest

from benchmarks.coexec import turns
from benchmarks.coexec.turns import QuietProbe
from phonebit.planner import Processor
from phonebit.planner.measure import measuring
from phonebit.planner.measure.measuring import PATIENCE_S
from support.noisy_device import Clock, Device

BOTH = tuple(Processor)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    for module in (measuring, turns):
        monkeypatch.setattr(module, "time", made_up)
    return made_up


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize("begin", [0.25, 0.35, 0.45])
def test_what_was_measured_in_a_disturbance_does_not_count(
    clock: Clock, side: Processor, begin: float
) -> None:
    """Whether it came before the probe, between both or with the measurement."""
    device = Device(clock, (begin, begin + 2, side))
    bird = QuietProbe(device, 1)
    for _ in range(10):
        times = bird.measure_quietly(BOTH, device.measure)
        assert (times.cpu_us, times.gpu_us) == (10.0, 10.0)
    assert 2 < clock.seconds < 6


def test_who_does_not_take_part_may_be_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.1, 1e9, Processor.GPU))
    bird = QuietProbe(device, 1)
    for _ in range(3):
        assert bird.measure_quietly([Processor.CPU], device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(0.9)


def test_a_device_that_stays_slow_is_measured_as_it_is(clock: Clock) -> None:
    device = Device(clock, (0.25, 1e9, Processor.CPU))
    bird = QuietProbe(device, 1)
    assert bird.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    slow = [bird.measure_quietly(BOTH, device.measure) for _ in range(100)]
    assert {times.cpu_us for times in slow} == {17.0}
    alone_s = 100 * 0.2  # a probe and a measurement
    assert PATIENCE_S + alone_s < clock.seconds < PATIENCE_S + 4 * alone_s


def test_a_single_quick_moment_is_not_what_the_layer_usually_takes(clock: Clock) -> None:
    device = Device(clock)
    bird = QuietProbe(device, 1)
    measurements = 10
    for number in range(measurements):
        if number == 3:
            device.quick = {clock.seconds}
        assert bird.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(measurements * 0.3)


def test_a_long_disturbance_does_not_become_usual(clock: Clock) -> None:
    device = Device(clock, (0.65, 9.65, Processor.GPU))
    bird = QuietProbe(device, 1)
    found = [bird.measure_quietly(BOTH, device.measure) for _ in range(10)]
    assert {times.gpu_us for times in found} == {10.0}
