"""From readings to energy: integration, what is known how finely, silence."""

from __future__ import annotations

import math

import pytest

from phonebit._runtime import EnergySpan, EnergyTrace
from phonebit.errors import InputError

ONE = (True,)


def sampled(power_mw: object, seconds: float, period_s: float) -> EnergySpan:
    trace = EnergyTrace(ONE, is_counter=False)
    for i in range(round(seconds / period_s) + 1):
        trace.add(i * period_s, [power_mw(i * period_s)])  # type: ignore[operator]
    return trace.span()


def test_power_that_changes_linearly_is_integrated_exactly() -> None:
    span = sampled(lambda t: 100 + 50 * t, 4.0, 0.5)
    assert span.energy_mj == pytest.approx(100 * 4 + 50 * 8)
    assert span.window_s == 4.0
    assert span.mean_mw == pytest.approx(200)


@pytest.mark.parametrize("period_s", [0.1, 0.05, 0.01])
def test_a_wave_of_power_is_integrated_within_the_trapezoids_bound(period_s: float) -> None:
    span = sampled(lambda t: 1000 + 500 * math.sin(t), 7.0, period_s)
    true = 1000 * 7 + 500 * (1 - math.cos(7.0))
    bound = 7.0 * period_s**2 / 12 * 500  # window * h^2 / 12 * largest second derivative
    assert abs(span.energy_mj - true) <= bound
    assert span.step_mj == pytest.approx(1500 * period_s, rel=0.1)


def test_uneven_samples_weigh_as_long_as_they_last() -> None:
    trace = EnergyTrace(ONE, is_counter=False)
    for time_s, power_mw in [(0.0, 10.0), (1.0, 10.0), (5.0, 30.0), (5.5, 30.0)]:
        trace.add(time_s, [power_mw])
    assert trace.span().energy_mj == 10 * 1 + 20 * 4 + 30 * 0.5


def stepped(step_mj: float, seconds: float, update_s: float, period_s: float = 0.02) -> EnergySpan:
    trace = EnergyTrace(ONE, is_counter=True)
    for i in range(round(seconds / period_s) + 1):
        trace.add(i * period_s, [5e6 + step_mj * math.floor(i * period_s / update_s + 1e-9)])
    return trace.span()


def test_a_counters_step_is_what_is_seen() -> None:
    span = stepped(30.0, 10.0, 0.1)
    assert span.energy_mj == pytest.approx(3000)
    assert span.step_mj == pytest.approx(30)
    assert span.uncertainty == pytest.approx(0.01)
    assert span.update_s == pytest.approx(0.1)
    assert not span.has_stopped


def test_a_step_is_at_least_the_unit() -> None:
    trace = EnergyTrace(ONE, is_counter=True, unit_mj=3.0)
    for i in range(5):
        trace.add(float(i), [float(i)])
    assert trace.span().step_mj == 3.0


def frozen_after(last_change_s: float, seconds: float) -> EnergySpan:
    trace = EnergyTrace(ONE, is_counter=True)
    for i in range(int(seconds / 0.02) + 1):
        trace.add(i * 0.02, [1000.0 * min(i * 0.02, last_change_s)])
    return trace.span()


def test_silence_makes_the_uncertainty_grow() -> None:
    assert frozen_after(1.0, 1.01).uncertainty < 0.03
    assert frozen_after(1.0, 1.5).uncertainty == pytest.approx(0.5, rel=0.05)
    assert frozen_after(1.0, 3.0).uncertainty == 1.0


def test_a_source_that_freezes_has_stopped_after_some_seconds() -> None:
    assert not frozen_after(1.0, 5.9).has_stopped
    assert frozen_after(1.0, 6.2).has_stopped


def test_a_slow_source_has_not_stopped() -> None:
    span = stepped(100.0, 59.0, 20.0)  # last change at 40 s
    assert not span.has_stopped
    assert span.changes == 2
    assert span.uncertainty > 0.4


def test_a_source_that_shows_one_value_is_known_to_nothing() -> None:
    for is_counter, energy_mj in ((True, 0.0), (False, 70.0)):
        trace = EnergyTrace(ONE, is_counter)
        trace.add(0.0, [7.0])
        trace.add(10.0, [7.0])
        span = trace.span()
        assert (span.energy_mj, span.changes, span.uncertainty) == (energy_mj, 0, 1.0)


def test_parts_of_a_rail_are_not_counted_twice() -> None:
    trace = EnergyTrace((True, False), is_counter=False)
    for i in range(3):
        trace.add(float(i), [100.0 + i, 60.0])
    span = trace.span()
    assert span.rails_mj == (202.0, 120.0)
    assert span.energy_mj == 202.0


def test_nothing_flowed_between_less_than_two_readings() -> None:
    trace = EnergyTrace(ONE, is_counter=True)
    for count in range(2):
        with pytest.raises(InputError, match=f"got {count} readings, expected two or more"):
            trace.span()
        trace.add(float(count), [1.0])
    trace.span()


def test_a_reading_of_another_source_is_refused() -> None:
    trace = EnergyTrace((True, False), is_counter=True)
    with pytest.raises(InputError, match="got 1 values, expected 2"):
        trace.add(0.0, [1.0])
