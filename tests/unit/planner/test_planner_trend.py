"""Trends: sums of costs are found, and carry over to larger layers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phonebit.errors import InputError
from phonebit.planner.json_records import from_record, to_record
from phonebit.planner.predict.cost_sum import CostSum, fit_cost_sum, products
from phonebit.planner.predict.finegrained import COSTS

pytest.importorskip("scipy", reason="SciPy is not installed")


def features() -> dict[str, np.ndarray]:
    """Two sizes, uniform in their logarithms."""
    sizes = np.exp(np.random.default_rng(1).uniform(2, 8, (2, 200)))
    return {"outputs": sizes[0], "words": sizes[1]}


def costs_of(seen: dict[str, np.ndarray]) -> np.ndarray:
    return 5 + 0.02 * seen["outputs"] + 0.001 * seen["outputs"] * seen["words"]


def test_costs_are_found_and_carry_over_to_larger_parts() -> None:
    seen = features()
    found = fit_cost_sum(seen, costs_of(seen), COSTS)
    assert found.terms == ((), ("outputs",), ("outputs", "words"))
    np.testing.assert_allclose(found.costs, [5, 0.02, 0.001], rtol=1e-6, atol=1e-9)
    larger = {name: 10 * values for name, values in seen.items()}
    np.testing.assert_allclose(found.logarithms(larger), np.log(costs_of(larger)), rtol=1e-6)


def test_single_outliers_count_little() -> None:
    seen = features()
    times = costs_of(seen)
    times[::20] *= 4
    found = fit_cost_sum(seen, times, COSTS)
    off = found.logarithms(seen) - np.log(costs_of(seen))
    assert np.abs(off).max() < 0.05


def test_no_part_is_predicted_to_take_next_to_nothing() -> None:
    seen = features()
    times = 0.01 * seen["outputs"]
    found = fit_cost_sum(seen, times, COSTS)
    nothing = {name: np.zeros(1) for name in seen}
    assert np.exp(found.logarithms(nothing))[0] == pytest.approx(0.7 * times.min())


def test_nothing_is_predicted_to_be_faster_for_being_larger() -> None:
    """Not even if the few layers measured say so."""
    seen = {name: values[:24] for name, values in features().items()}
    times = (1 + seen["outputs"]) ** 1.2 * (1 + seen["words"]) ** -0.4
    assert min(fit_cost_sum(seen, times, COSTS).costs) >= 0


def test_a_single_part_has_a_trend_too() -> None:
    seen = {name: values[:1] for name, values in features().items()}
    trend = fit_cost_sum(seen, costs_of(seen), COSTS)
    np.testing.assert_allclose(trend.logarithms(seen), np.log(costs_of(seen)), rtol=0.01)


def test_trends_survive_their_file() -> None:
    trend = fit_cost_sum(features(), costs_of(features()), COSTS)
    assert from_record(CostSum, json.loads(json.dumps(to_record(trend))), "trend") == trend


@pytest.mark.parametrize(
    "change",
    [
        {"costs": [1.0, 1.0]},
        {"costs": [-1.0]},
        {"costs": [float("nan")]},
        {"costs": 3},
        {"least_us": 0.0},
        {"terms": [[0]]},
        {"terms": 3},
        {"slope": 1.0},
    ],
)
def test_damaged_trends_are_refused(change: dict[str, object]) -> None:
    record: dict[str, object] = {"terms": [["rows"]], "costs": [1.0], "least_us": 1.0}
    assert from_record(CostSum, record, "trend") == CostSum((("rows",),), (1.0,), 1.0)
    with pytest.raises(InputError, match=r"trend|damaged model"):
        from_record(CostSum, record | change, "trend")
    with pytest.raises(InputError, match="trend"):
        from_record(CostSum, None, "trend")


def test_the_empty_product_is_one() -> None:
    seen = {"rows": np.array([2.0]), "words": np.array([3.0])}
    terms = ((), ("rows",), ("words",), ("rows", "words"))
    assert products(seen, terms).tolist() == [[1, 2, 3, 6]]
