"""Measurements of layers wait until the device is undisturbed, and not for ever."""

from __future__ import annotations

import pytest

from phonebit.planner import Processor
from phonebit.planner.measure import measuring
from phonebit.planner.measure.measuring import (
    MAX_TURNS,
    QUIET_LIMIT_S,
    LayerTimes,
    NoiseProbe,
    PassTimes,
)
from support.noisy_device import Clock, Device

BOTH = tuple(Processor)
TURNS = 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(measuring, "time", made_up)
    return made_up


def test_the_minimum_of_some_turns_counts(clock: Clock) -> None:
    """Disturbances that are shorter than the turns of three measurements."""
    device = Device(
        clock, *((begin / 10, begin / 10 + 0.25, Processor.GPU) for begin in range(3, 900, 7))
    )
    probe = NoiseProbe(device, 1)
    for number in range(1, 11):
        times, of_probe = probe.measure_in_turns(BOTH, 3 * [device.measure], TURNS)
        assert times == 3 * [LayerTimes(10.0, 10.0, 10.0)]
        assert of_probe == LayerTimes(10.0, 10.0, 10.0)
        assert clock.seconds == pytest.approx(number * TURNS * 4 * 0.1)  # no further turns


def test_there_are_more_turns_while_the_device_is_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.75, 4.0, Processor.CPU))
    probe = NoiseProbe(device, 1)
    for _ in range(3):
        [times], _ = probe.measure_in_turns(BOTH, [device.measure], TURNS)
        assert (times.cpu_us, times.gpu_us) == (10.0, 10.0)
    assert clock.seconds == pytest.approx(4.0 + 2 * 0.2 + TURNS * 2 * 0.1, abs=0.25)


def test_turns_end_on_a_device_that_stays_slow(clock: Clock) -> None:
    device = Device(clock, (0.75, 1e9, Processor.CPU))
    probe = NoiseProbe(device, 1)
    found = [probe.measure_in_turns(BOTH, [device.measure], TURNS)[0][0] for _ in range(100)]
    assert {times.cpu_us for times in found[1:]} == {17.0}
    alone_s = 100 * TURNS * 2 * 0.1
    assert QUIET_LIMIT_S + alone_s < clock.seconds < QUIET_LIMIT_S + 4 * alone_s


def test_who_has_no_turn_may_be_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.75, 1e9, Processor.GPU))
    probe = NoiseProbe(device, 1)
    for _ in range(3):
        [times], _ = probe.measure_in_turns([Processor.CPU], [device.measure], TURNS)
        assert times.cpu_us == 10.0
    assert clock.seconds == pytest.approx(3 * TURNS * 2 * 0.1)


def test_times_are_those_of_the_usual_speed(clock: Clock) -> None:
    device = Device(clock)
    device.clocks = {Processor.CPU: (3.0, 6.0, 1.09), Processor.GPU: (5.0, 8.0, 1.09)}
    probe = NoiseProbe(device, 1)
    raw, times = [], []
    for _ in range(12):
        raw.append(device.measure())
        times += probe.measure_times(BOTH, [device.measure], TURNS)
    assert {round(found.cpu_us, 1) for found in raw} == {10.0, 10.9}
    assert {round(found.gpu_us, 1) for found in raw} == {10.0, 10.9}
    for found in times:  # the clock may change between the probe and the layer
        assert found.cpu_us == pytest.approx(10, rel=0.01)
        assert found.gpu_us == pytest.approx(10, rel=0.01)


def pass_of(times: LayerTimes) -> PassTimes:
    return PassTimes(times.total_us, (times.cpu_us,), (times.gpu_us,))


def test_a_typical_pass_is_the_mean_of_the_middle_half() -> None:
    passes = [PassTimes(total, (total - 1, 0.0), (0.0, 1.0)) for total in (5.0, 90.0, 7.0, 6.0)]
    assert PassTimes.typical(passes) == PassTimes(6.5, (5.5, 0.0), (0.0, 1.0))
    assert PassTimes.typical(passes[:1]) == passes[0]


@pytest.mark.parametrize("begin", [0.15, 0.35, 0.55, 0.95])
def test_inferences_next_to_a_slow_probe_do_not_count(clock: Clock, begin: float) -> None:
    """Half of eight turns are disturbed."""
    device = Device(clock, (begin, begin + 0.8, Processor.CPU))
    probe = NoiseProbe(device, 1)
    found = probe.measure_passes([lambda: pass_of(device.measure())], 8, 0.0)
    assert found == [PassTimes(10.0, (10.0,), (10.0,))]


def test_short_passes_are_repeated_for_some_time(clock: Clock) -> None:
    device = Device(clock)
    probe = NoiseProbe(device, 1)
    calls: list[float] = []

    def measure() -> PassTimes:
        calls.append(clock.seconds)
        return pass_of(device.measure())

    probe.measure_passes([measure], 3, 0.9)
    assert len(calls) == 5
    probe.measure_passes([measure], 3, 1e9)
    assert len(calls) == 5 + MAX_TURNS


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize("begin", [0.25, 0.35, 0.45])
def test_what_was_measured_in_a_disturbance_does_not_count(
    clock: Clock, side: Processor, begin: float
) -> None:
    """Whether it came before the probe, between both or with the measurement."""
    device = Device(clock, (begin, begin + 2, side))
    probe = NoiseProbe(device, 1)
    for _ in range(10):
        times = probe.measure_quietly(BOTH, device.measure)
        assert (times.cpu_us, times.gpu_us) == (10.0, 10.0)
    assert 2 < clock.seconds < 6


def test_who_does_not_take_part_may_be_disturbed(clock: Clock) -> None:
    device = Device(clock, (0.1, 1e9, Processor.GPU))
    probe = NoiseProbe(device, 1)
    for _ in range(3):
        assert probe.measure_quietly([Processor.CPU], device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(0.9)


def test_a_device_that_stays_slow_is_measured_as_it_is(clock: Clock) -> None:
    device = Device(clock, (0.25, 1e9, Processor.CPU))
    probe = NoiseProbe(device, 1)
    assert probe.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    slow = [probe.measure_quietly(BOTH, device.measure) for _ in range(100)]
    assert {times.cpu_us for times in slow} == {17.0}
    alone_s = 100 * 0.2  # a probe and a measurement
    assert QUIET_LIMIT_S + alone_s < clock.seconds < QUIET_LIMIT_S + 4 * alone_s


def test_a_single_quick_moment_is_not_what_the_layer_usually_takes(clock: Clock) -> None:
    device = Device(clock)
    probe = NoiseProbe(device, 1)
    measurements = 10
    for number in range(measurements):
        if number == 3:
            device.quick = {clock.seconds}
        assert probe.measure_quietly(BOTH, device.measure).cpu_us == 10.0
    assert clock.seconds == pytest.approx(measurements * 0.3)


def test_a_long_disturbance_does_not_become_usual(clock: Clock) -> None:
    device = Device(clock, (0.65, 9.65, Processor.GPU))
    probe = NoiseProbe(device, 1)
    found = [probe.measure_quietly(BOTH, device.measure) for _ in range(10)]
    assert {times.gpu_us for times in found} == {10.0}
