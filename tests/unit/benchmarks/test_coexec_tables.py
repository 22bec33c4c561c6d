"""Tables of benchmarks/coexec."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.coexec import document, networks, tables
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.stage_costs import StageCosts
from support.made_up_device import CONTEXT


def layer_row(kind: str, threads: int, **us: float) -> dict[str, Any]:
    times = {"cpu": 20.0, "gpu": 30.0, "search": 10.0, "finegrained": 12.5, "codl": 16.0,
             "ulayer": 20.0}  # fmt: skip
    return {"kind": kind, "threads": threads, "us": times | us}


def network(**times: float) -> dict[str, Any]:
    ways = {"cpu": 4.0, "gpu": 8.0, "layer_to_processor": 3.2, "ulayer": 3.0, "codl": 2.4,
            "finegrained": 2.0, "planned": 2.1, "tried": 2.0} | times  # fmt: skip
    plans: dict[str, dict[str, Any]] = {
        "layer_to_processor": {"predicted_ms": 3.2},
        "codl": {},
        "ulayer": {},
        "finegrained": {"predicted_ms": 1.5},
        "planned": {"is_guarded": True},
        "tried": {"is_guarded": True, "is_tried": True},
    }
    return {
        "context": CONTEXT,
        "layers": 4,
        "times": {way: {"median_ms": time} for way, time in ways.items()},
        "plans": {way: {"is_guarded": False} | facts for way, facts in plans.items()},
        "layer_by_layer_ms": 1.9,
    }


def codl_network() -> dict[str, Any]:
    ways = network(without_chains=2.5, rows=3.2, channels=4.0)
    unchained = {"layers": {"rows": 4}, "chains": [], "exchange_ms": 0.5}
    chained = {"layers": {"chain": 3, "cpu": 1}, "chains": [3], "exchange_ms": 0.25, "pass_ms": 2.5}
    reason = {"not_measured": "no source"}
    return ways | {
        "plans": {"codl": chained, "without_chains": unchained},
        "arena_bytes": {"cpu": 1_000_000, "gpu": 1_200_000, "codl": 1_500_000},
        "energy": {"cpu": {"energy_mj": 1.5}, "gpu": reason, "codl": reason},
    }


@pytest.fixture
def results() -> dict[str, Any]:
    error = {"mape": 0.04, "within_10": 0.9}
    return {
        "context": CONTEXT,
        "testbeds": {
            "g1c1-avx2": {
                "failures": {},
                "testbed": {"context": CONTEXT, "gpu_cores": [0], "cpu_cores": [1],
                            "isa": "avx2", "gpu_gmacs": 100.0, "cpu_gmacs": 200.0,
                            "cpu_over_gpu": 2.0,
                            "slower_together": {"cpu": 1.01, "gpu": 1.02}},
                "sync": {"context": CONTEXT,
                         "bytes": {"4096": {"svm, polling": {"median_us": 7.25}}}},
                "predictors": {
                    "context": CONTEXT,
                    "groups": [{"processor": "gpu", "layers": "linear", "parts": 9,
                                "errors": {"codl": error, "finegrained": error,
                                           "measured_again": {"mape": 0.03}}},
                               {"processor": "gpu", "layers": "convolutional", "parts": 3,
                                "errors": {"codl": {"mape": 0.08, "within_10": 0.5}}},
                               {"processor": "gpu", "layers": "others", "parts": 50,
                                "errors": {"codl": {"mape": 0.9, "within_10": 0.0}}}],
                    "model_bytes": {"codl": 1234},
                    "implementations": [{"processor": "gpu", "kernel": "bconv2d_tiled",
                                         "parts": 7, "mape": 0.05, "within_10": 0.875}],
                },
                "layers": {"context": CONTEXT,
                           "rows": [layer_row("linear", 1), layer_row("convolution", 1)]},
                "network_vgg16": network(**{"cpu again": 4.1}),
                "network_googlenet": network(codl=4.5, planned=4.5),
                "codl_vgg16": codl_network(),
                "search_vgg_small": network(search=2.0, finegrained=2.5) | {"plans_tried": 99},
            }
        },
    }  # fmt: skip


def test_tables_are_made_of_the_results(
    results: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "coexec.json").write_text(json.dumps(results))
    monkeypatch.setattr(document, "RESULTS", tmp_path)
    text = document.section()
    for cells in (
        "| g1c1-avx2 | 1 | 1, avx2 | 100 | 200 | 2.00 | 1.02x | 1.01x |",
        "| 4 KB | 7.2 |",
        "A CPU, 2 cores; OpenCL driver not recorded; commit abc; 2026-01-01: "
        "`python -m benchmarks.coexec.sync --testbed g1c1-avx2`.",
        "| g1c1-avx2 | gpu | linear | 9 | - | 4.0% | 4.0% | - | 3.0% |",
        "| g1c1-avx2 | 1 | linear | 1 | 1.60x | 1.25x | 1.00x | 2.00x | 60% |",
        "| VGG16 | 8.00 | 4.00 | 1.90 | 2.11x | 2.00 | **2.00x** | 1.25x | 1.50x | 4.00x |",
        "| g1c1-avx2 | 2.00 | VGG16 | 4.00 | 8.00 | 1.25x | 1.33x | 1.67x | "
        "2.00x | 1.90x | 2.00x | 1.50x | - |",
        "| g1c1-avx2 | layer to processor | 2 | 0.0% | 0.0% | 1.00 | - | - |",
        "| VGG16 | 4.00 | 8.00 | 2.40 | **1.67x** | 1.50x | 1.60x | 1.25x | 1.00x |",
        "| VGG16 | 0 | 0 | 3 | 3 | 1 | 0.25 of 2.50 | not recorded | "
        "1.50, not measured, not measured | 1.0, 1.2, 1.5 |",
        "| g1c1-avx2 | CoDL | 80.0% | - | 1,234 |",  # (9 * 0.9 + 3 * 0.5) / 12
        "| g1c1-avx2 | gpu | `bconv2d_tiled` | 7 | 5.0% | 87.5% |",
        "| VGG-small | 4.00 | 8.00 | 2.00 | **2.00x** | 1.60x | 60% | 1.50x | 99 |",
        "| g1c1-avx2 | Fine-Grained | 2 | 25.0% | 25.0% | 0.75 |",
        "1 of 2 guarded plans without auto-selection are more than 2 % slower than the better "
        "single processor: GoogLeNet on g1c1-avx2 by phonebit plan (12.5%). None of 2 "
        "auto-selected plans is more than 2 % slower than the better single processor.",
        "2.5% off the first one in the median of 1 cases, 2.5% at\n"
        "most, and more than 2 % slower in 1 of them: VGG16 on g1c1-avx2 (+2.5%).",
    ):
        assert cells in text


def measured_network(ms: float) -> dict[str, Any]:
    """Planned when the machine was half as fast; a prediction 10 % too long at that speed."""
    facts = {"predicted_ms": 2.2 * ms, "single_predicted_ms": 8.0, "attainable_ms": 5.0,
             "check": {"home": "cpu", "home_us": 8000.0}}  # fmt: skip
    result = network(planned_measured=ms)
    return result | {"plans": {"planned_measured": {"is_guarded": True} | facts}}


def test_gains_are_shares_of_other_gains() -> None:
    names = ("network_vgg16", "network_googlenet", "network_quicknet")
    testbed = {"g1c1-avx2": {name: measured_network(3.2) for name in names}}
    assert tables.gains_text(testbed) == (
        "On g1c1-avx2 phonebit plan --measure gains 1.25x in the geometric mean of 3 networks: "
        "50% of the gain of rates added (1.50x), 42% of the gain of layers cut (1.60x)."
    )
    testbed["g1c1-avx2"].popitem()
    assert tables.gains_text(testbed) == ""


def test_predictions_are_judged_at_one_speed() -> None:
    testbed = {"g1c1-avx2": {"network_vgg16": measured_network(3.2)}}
    row = "| g1c1-avx2 | phonebit plan --measure | 1 | 120.0% | 120.0% | 2.20 | 10.0% | 10.0% |"
    assert row in tables.predictions_table(testbed)


def test_what_is_attainable_has_launches_and_synchronizations() -> None:
    """The first layer is cut; the second one would lose by its synchronization."""
    single_us = {Processor.CPU: [90.0, 12.0], Processor.GPU: [40.0, 10.0]}
    costs = cast(StageCosts, SimpleNamespace(single_us=single_us, sharing=SharingCost(5.0)))
    first = 90 * 40 / (90 + 40 - 10) + 5
    assert networks.attainable_us(costs, Processor.GPU) == pytest.approx(first + 10)


def test_what_was_not_measured_is_left_out(
    results: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    testbed = results["testbeds"]["g1c1-avx2"]
    results["testbeds"]["g1c1-avx2"] = {
        "failures": {"sync": "no device"},
        "testbed": testbed["testbed"],
    }
    (tmp_path / "coexec.json").write_text(json.dumps(results))
    monkeypatch.setattr(document, "RESULTS", tmp_path)
    assert "####" not in document.section()
