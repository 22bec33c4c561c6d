"""Measurements of layers wait until the device is undisturbed, and not for ever."""

from __future__ import annotations

import pytest

from phonebit.planner import Processor
from phonebit.planner.measure import measuring
from phonebit.planner.measure.measuring import (
    MOST_TURNS,
    PATIENCE_S,
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


def test_the_least_of_some_turns_counts(clock: Clock) -> None:
    """Disturbances that are shorter than the turns of three measurements."""
    device = Device(
        clock, *((begin / 10, begin / 10 + 0.25, Processor.GPU) for begin in range(3, 900, 7))
    )
    bird = NoiseProbe(device, 1)
    for number in range(1, 11):
        times, probe = bird.measure_in_turns(BOTH, 3 * [device.measure], TURNS)
        assert times == 3 * [LayerTimes(10.0, 10.0, 10.0)]
        assert probe == LayerTimes(10.0, 10.0, 10.0)
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
        raw.append(device.measure())
        times += bird.measure_times(BOTH, [device.measure], TURNS)
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
def test_passes_beside_a_slow_probe_do_not_count(clock: Clock, begin: float) -> None:
    """Half of eight turns are disturbed."""
    device = Device(clock, (begin, begin + 0.8, Processor.CPU))
    bird = NoiseProbe(device, 1)
    found = bird.measure_passes([lambda: pass_of(device.measure())], 8, 0.0)
    assert found == [PassTimes(10.0, (10.0,), (10.0,))]


def test_short_passes_are_repeated_for_some_time(clock: Clock) -> None:
    device = Device(clock)
    bird = NoiseProbe(device, 1)
    calls: list[float] = []

    def measure() -> PassTimes:
        calls.append(clock.seconds)
        return pass_of(device.measure())

    bird.measure_passes([measure], 3, 0.9)
    assert len(calls) == 5
    bird.measure_passes([measure], 3, 1e9)
    assert len(calls) == 5 + MOST_TURNS
