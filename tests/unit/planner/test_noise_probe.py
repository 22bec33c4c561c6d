"""Measurements wait until the device is undisturbed, and not for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from phonebit.planner import Processor
from phonebit.planner.measure import noise_probe
from phonebit.planner.measure.measuring import LayerTimes
from phonebit.planner.measure.noise_probe import PATIENCE_S, NoiseProbe

BOTH = tuple(Processor)
TURNS = 4


class Clock:
    """Time passes only where something is measured."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    perf_counter = monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(noise_probe, "time", made_up)
    return made_up


class Device:
    """The probe's layer takes 10 us, or more while a processor is disturbed.

    Args:
        clock: Goes on by a tenth of a second with every measurement.
        disturbed: From when until when, and who.
    """

    def __init__(self, clock: Clock, *disturbed: tuple[float, float, Processor]) -> None:
        self.clock = clock
        self.disturbed = disturbed
        self.quick: set[float] = set()
        """Moments when the layer takes 7 us."""
        self.clocks: dict[Processor, tuple[float, float, float]] = {}
        """From when until when everything takes how many times as long."""

    def us(self, processor: Processor) -> float:
        now = self.clock.seconds
        slow = any(begin <= now < end and processor == who for begin, end, who in self.disturbed)
        since, until, times_as_long = self.clocks.get(processor, (0.0, 0.0, 1.0))
        us = 17.0 if slow else 7.0 if now in self.quick else 10.0
        return us * times_as_long if since <= now < until else us

    def measure_layer(self, index: int, cpu: Any, gpu: Any, repeats: int) -> Mapping[str, float]:
        assert cpu is not None and gpu is not None
        times = {"cpu_us": self.us(Processor.CPU), "gpu_us": self.us(Processor.GPU)}
        self.clock.seconds += 0.1
        return {"total_us": max(times.values()), **times}

    def dispatch(self, index: int, gpu: Any) -> Sequence[Any]:
        return []

    def measure(self) -> LayerTimes:
        """What the probe is for: as much slower as the probe's layer is."""
        cpu_us, gpu_us = self.us(Processor.CPU), self.us(Processor.GPU)
        self.clock.seconds += 0.1
        return LayerTimes(max(cpu_us, gpu_us), cpu_us, gpu_us)


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize("begin", [0.25, 0.35, 0.45])
def test_what_was_measured_in_a_disturbance_does_not_count(
    clock: Clock, side: Processor, begin: float
) -> None:
    """Whether it came before the probe, between both or with the measurement."""
    device = Device(clock, (begin, begin + 2, side))
    bird = NoiseProbe(device, 1)
    for _ in range(10):
        times = bird.measure_quietly(BOTH, device.measure)
        assert (times.cpu_us, times.gpu_us) == (10.0, 10.0)
    assert 2 < clock.seconds < 6


def test_who_does_not_take_part_may_be_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.1, 1e9, Processor.GPU))
    bird = NoiseProbe(device, 1)
    for _ in range(3):
        assert bird.measure_quietly([Processor.CPU], device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(0.9)


def test_a_device_that_stays_slow_is_measured_as_it_is(clock: Clock) -> None:
    device = Device(clock, (0.25, 1e9, Processor.CPU))
    bird = NoiseProbe(device, 1)
    assert bird.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    slow = [bird.measure_quietly(BOTH, device.measure) for _ in range(100)]
    assert {times.cpu_us for times in slow} == {17.0}
    alone_s = 100 * 0.2  # a probe and a measurement
    assert PATIENCE_S + alone_s < clock.seconds < PATIENCE_S + 4 * alone_s


def test_a_single_quick_moment_is_not_what_the_layer_usually_takes(clock: Clock) -> None:
    device = Device(clock)
    bird = NoiseProbe(device, 1)
    measurements = 10
    for number in range(measurements):
        if number == 3:
            device.quick = {clock.seconds}
        assert bird.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(measurements * 0.3)


def test_a_long_disturbance_does_not_become_usual(clock: Clock) -> None:
    device = Device(clock, (0.65, 9.65, Processor.GPU))
    bird = NoiseProbe(device, 1)
    found = [bird.measure_quietly(BOTH, device.measure) for _ in range(10)]
    assert {times.gpu_us for times in found} == {10.0}


def test_the_least_of_some_turns_counts(clock: Clock) -> None:
    """Disturbances that are shorter than the turns of three measurements."""
    device = Device(
        clock, *((begin / 10, begin / 10 + 0.25, Processor.GPU) for begin in range(3, 900, 7))
    )
    bird = NoiseProbe(device, 1)
    for number in range(1, 11):
        times, probe = bird.measure_in_turns(BOTH, 3 * [device.measure], TURNS)
        assert times == 3 * [LayerTimes(10.0, 10.0, 10.0)]
        assert probe == {Processor.CPU: 10.0, Processor.GPU: 10.0}
        assert clock.seconds == pytest.approx(number * TURNS * 4 * 0.1)  # no further turns


def test_there_are_more_turns_while_the_device_is_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.75, 4.0, Processor.CPU))
    bird = NoiseProbe(device, 1)
    for _ in range(3):
        [times], _ = bird.measure_in_turns(BOTH, [device.measure], TURNS)
        assert (times.cpu_us, times.gpu_us) == (10.0, 10.0)
    assert clock.seconds == pytest.approx(4.0 + 2 * 0.2 + TURNS * 2 * 0.1, abs=0.25)


def test_turns_end_on_a_device_that_stays_slow(clock: Clock) -> None:
    device = Device(clock, (0.75, 1e9, Processor.CPU))
    bird = NoiseProbe(device, 1)
    found = [bird.measure_in_turns(BOTH, [device.measure], TURNS)[0][0] for _ in range(100)]
    assert {times.cpu_us for times in found[1:]} == {17.0}
    alone_s = 100 * TURNS * 2 * 0.1
    assert PATIENCE_S + alone_s < clock.seconds < PATIENCE_S + 4 * alone_s


def test_who_has_no_turn_may_be_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.75, 1e9, Processor.GPU))
    bird = NoiseProbe(device, 1)
    for _ in range(3):
        [times], _ = bird.measure_in_turns([Processor.CPU], [device.measure], TURNS)
        assert times.cpu_us == 10.0
    assert clock.seconds == pytest.approx(3 * TURNS * 2 * 0.1)


def test_times_are_those_of_the_usual_speed(clock: Clock) -> None:
    device = Device(clock)
    device.clocks = {Processor.CPU: (3.0, 6.0, 1.09), Processor.GPU: (5.0, 8.0, 1.09)}
    bird = NoiseProbe(device, 1)
    raw, times = [], []
    for _ in range(12):
        raw.append(bird.measure_quietly(BOTH, device.measure))
        times.append(bird.measure_times(BOTH, device.measure, TURNS))
    assert {round(found.cpu_us, 1) for found in raw} == {10.0, 10.9}
    assert {round(found.gpu_us, 1) for found in raw} == {10.0, 10.9}
    for found in times:  # the clock may change between the probe and the layer
        assert found.cpu_us == pytest.approx(10, rel=0.01)
        assert found.gpu_us == pytest.approx(10, rel=0.01)
