"""Trends: both forms find the laws that they can express, and the better one is kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phonebit.errors import InputError
from phonebit.planner.predict.training_trend import fit_cost_sum, fit_power_law, fit_trend
from phonebit.planner.predict.trend import CostSum, PowerLaw, products, trend_from_dict

pytest.importorskip("scipy", reason="SciPy is not installed")

TERMS = ((), (0,), (1,), (0, 1))
LAYERS = [number // 5 for number in range(200)]


def features() -> np.ndarray:
    """Two sizes, uniform in their logarithms."""
    return np.exp(np.random.default_rng(1).uniform(2, 8, (200, 2)))


def costs_of(seen: np.ndarray) -> np.ndarray:
    return 5 + 0.02 * seen[:, 0] + 0.001 * seen[:, 0] * seen[:, 1]


def powers_of(seen: np.ndarray) -> np.ndarray:
    return 0.3 * (1 + seen[:, 0]) ** 0.6 * (1 + seen[:, 1]) ** 0.3


def test_costs_are_found_and_carry_over_to_larger_parts() -> None:
    seen = features()
    found = fit_cost_sum(seen, costs_of(seen), TERMS)
    np.testing.assert_allclose(found.costs, [5, 0.02, 0, 0.001], rtol=1e-6, atol=1e-9)
    larger = seen * 10
    np.testing.assert_allclose(found.logarithms(larger), np.log(costs_of(larger)), rtol=1e-6)


def test_single_outliers_count_little() -> None:
    seen = features()
    times = costs_of(seen)
    times[::20] *= 4
    found = fit_cost_sum(seen, times, TERMS)
    off = found.logarithms(seen) - np.log(costs_of(seen))
    assert np.abs(off).max() < 0.05


def test_no_part_is_predicted_to_take_next_to_nothing() -> None:
    seen = features()
    times = 0.01 * seen[:, 0]
    found = fit_cost_sum(seen, times, TERMS)
    assert np.exp(found.logarithms(np.zeros((1, 2))))[0] == pytest.approx(0.7 * times.min())


def test_nothing_is_predicted_to_be_faster_for_being_larger() -> None:
    """Not even if the few layers measured say so."""
    seen = features()[:24]
    times = (1 + seen[:, 0]) ** 1.2 * (1 + seen[:, 1]) ** -0.4
    assert min(fit_power_law(seen, times, (0, 1)).weights[1:]) >= 0


def test_the_form_that_predicts_better_is_kept() -> None:
    seen = features()
    assert isinstance(fit_trend(seen, costs_of(seen), LAYERS, (0, 1), TERMS), CostSum)
    assert isinstance(fit_trend(seen, powers_of(seen), LAYERS, (0, 1), TERMS), PowerLaw)


def test_a_single_layer_has_a_trend_too() -> None:
    seen = features()[:5]
    trend = fit_trend(seen, costs_of(seen), LAYERS[:5], (0, 1), TERMS)
    assert np.isfinite(trend.logarithms(seen)).all()


def test_trends_survive_their_file() -> None:
    seen = features()
    for trend in (
        fit_cost_sum(seen, costs_of(seen), TERMS),
        fit_power_law(seen, powers_of(seen), (0, 1)),
    ):
        again = trend_from_dict(json.loads(json.dumps(trend.to_dict())))
        assert again == trend
        assert again.reads == {0, 1}


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"terms": [[0]], "costs": [1.0]},
        {"terms": [[0]], "costs": [-1.0], "least_us": 1.0},
        {"terms": [[0]], "costs": [1.0], "least_us": 0.0},
        {"terms": [["0"]], "costs": [1.0], "least_us": 1.0},
        {"terms": 3, "costs": [], "least_us": 1.0},
        {"columns": [0], "weights": [1.0]},
        {"columns": [0.5], "weights": [1.0, 1.0]},
    ],
)
def test_damaged_trends_are_refused(record: object) -> None:
    with pytest.raises(InputError, match="damaged model"):
        trend_from_dict(record)


def test_the_empty_product_is_one() -> None:
    assert products(np.array([[2.0, 3.0]]), TERMS).tolist() == [[1, 2, 3, 6]]
