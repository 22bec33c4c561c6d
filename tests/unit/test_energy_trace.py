"""From readings to energy: wrap-around, integration, what is known how finely, silence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phonebit.energy.source import EnergyError, GrowingCounter, Rail
from phonebit.energy.trace import Span, Trace

ONE = (Rail("all"),)


@given(
    st.integers(1, 2**40),
    st.integers(0, 2**41),
    st.lists(st.floats(0, 1, exclude_max=True), max_size=30),
)
def test_a_counter_that_wraps_is_followed_exactly(
    modulus: int, start: int, fractions: list[float]
) -> None:
    counter = GrowingCounter("here", modulus)
    true = start
    counter.advance(true % modulus)
    for fraction in fractions:
        true += int(fraction * modulus)  # less than a turn between two readings
        assert counter.advance(true % modulus) == true - start


def test_a_counter_that_does_not_wrap_must_not_go_backwards() -> None:
    counter = GrowingCounter("rail X", None)
    counter.advance(10)
    with pytest.raises(EnergyError, match=r"rail X: the counter went backwards.*got 9"):
        counter.advance(9)


@pytest.mark.parametrize("raw", [-1, 100])
def test_a_counter_beyond_its_range_is_refused(raw: int) -> None:
    with pytest.raises(EnergyError, match=r"out of its range.*expected 0 to 99"):
        GrowingCounter("rail X", 100).advance(raw)


def sampled(power_mw: object, seconds: float, period_s: float) -> Span:
    trace = Trace(ONE, "power")
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
    trace = Trace(ONE, "power")
    for time_s, power_mw in [(0.0, 10.0), (1.0, 10.0), (5.0, 30.0), (5.5, 30.0)]:
        trace.add(time_s, [power_mw])
    assert trace.span().energy_mj == 10 * 1 + 20 * 4 + 30 * 0.5


def stepped(step_mj: float, seconds: float, update_s: float, period_s: float = 0.02) -> Span:
    trace = Trace(ONE, "counter")
    for i in range(round(seconds / period_s) + 1):
        trace.add(i * period_s, [5e6 + step_mj * math.floor(i * period_s / update_s + 1e-9)])
    return trace.span()


def test_a_counters_step_is_what_is_seen() -> None:
    span = stepped(30.0, 10.0, 0.1)
    assert span.energy_mj == pytest.approx(3000)
    assert span.step_mj == pytest.approx(30)
    assert span.uncertainty == pytest.approx(0.01)
    assert span.update_s == pytest.approx(0.1)
    assert not span.stopped


def test_a_step_is_at_least_the_unit() -> None:
    trace = Trace(ONE, "counter", unit_mj=3.0)
    for i in range(5):
        trace.add(float(i), [float(i)])
    assert trace.span().step_mj == 3.0


def frozen_after(last_change_s: float, seconds: float) -> Span:
    trace = Trace(ONE, "counter")
    for i in range(int(seconds / 0.02) + 1):
        trace.add(i * 0.02, [1000.0 * min(i * 0.02, last_change_s)])
    return trace.span()


def test_silence_makes_the_uncertainty_grow() -> None:
    assert frozen_after(1.0, 1.01).uncertainty < 0.03
    assert frozen_after(1.0, 1.5).uncertainty == pytest.approx(0.5, rel=0.05)
    assert frozen_after(1.0, 3.0).uncertainty == 1.0


def test_a_source_that_freezes_has_stopped_after_some_seconds() -> None:
    assert not frozen_after(1.0, 5.9).stopped
    assert frozen_after(1.0, 6.2).stopped


def test_a_slow_source_has_not_stopped() -> None:
    span = stepped(100.0, 59.0, 20.0)  # last change at 40 s
    assert not span.stopped
    assert span.changes == 2
    assert span.uncertainty > 0.4


def test_a_source_that_shows_one_value_is_known_to_nothing() -> None:
    for kind, energy_mj in (("counter", 0.0), ("power", 70.0)):
        trace = Trace(ONE, kind)  # type: ignore[arg-type]
        trace.add(0.0, [7.0])
        trace.add(10.0, [7.0])
        span = trace.span()
        assert (span.energy_mj, span.changes, span.uncertainty) == (energy_mj, 0, 1.0)


def test_parts_of_a_rail_are_not_counted_twice() -> None:
    rails = (Rail("VDD_IN"), Rail("VDD_CPU", counted=False))
    trace = Trace(rails, "power")
    for i in range(3):
        trace.add(float(i), [100.0 + i, 60.0])
    span = trace.span()
    assert span.rails_mj == (202.0, 120.0)
    assert span.energy_mj == 202.0
