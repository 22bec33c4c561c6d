"""phonebit_bench --collect: orders of ``phonebit collect`` become samples that training accepts."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from native_program import Program

from phonebit.cli.main import app
from phonebit.planner import Processor
from phonebit.planner.measure.measurement_job import (
    RESULTS_FILE,
    collect_results,
    write_measurement_job,
)
from phonebit.planner.measure.orders import CollectionPlan
from phonebit.planner.predict.profile import read_profile
from phonebit.planner.predict.samples import read_samples

pytestmark = pytest.mark.usefixtures("opencl")
SHORT = {"cuts": 1, "turns": 1, "rounds": 1}
ORDERS = 5 + 6
"""Synchronizations, and layers."""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    write_measurement_job(tmp_path / "orders", CollectionPlan(6, (1,), **SHORT))
    return tmp_path / "orders"


def test_orders_become_samples(bench: Program, orders: Path, tmp_path: Path) -> None:
    done = bench("--collect", orders)
    assert done.code == 0, done
    assert f"{ORDERS} orders measured, 0 known before" in done.out
    assert done.err.count("order ") == ORDERS
    report = collect_results(orders, orders / RESULTS_FILE, tmp_path / "samples.jsonl")
    assert (report.measured, report.missing, report.failed) == (6, 0, {})
    samples = read_samples(tmp_path / "samples.jsonl")
    assert {sample.processor for sample in samples.parts} == set(Processor)
    assert all(sample.us > 0 and sample.variant for sample in samples.parts)


def test_the_facts_are_those_that_phonebit_collect_finds(
    bench: Program, orders: Path, tmp_path: Path
) -> None:
    from phonebit.devices.gpus import gpu_devices
    from phonebit.planner.cost_models import facts_here

    assert bench("--collect", orders).code == 0
    name = json.loads((orders / RESULTS_FILE).read_text().splitlines()[0])["gpu"]["name"]
    same = [device for device in gpu_devices() if device.name == name]
    if not same:
        pytest.skip("pyopencl's OpenCL library shows other devices than the system's")
    collect_results(orders, orders / RESULTS_FILE, tmp_path / "samples.jsonl")
    facts = facts_here(f"gpu:{same[0].index}+cpu", (1,))
    assert read_samples(tmp_path / "samples.jsonl").device == facts


def test_an_interrupted_collection_goes_on(bench: Program, orders: Path, tmp_path: Path) -> None:
    results = orders / RESULTS_FILE
    with subprocess.Popen(
        [bench.path, "--collect", orders], env=bench.environment, stderr=subprocess.PIPE
    ) as begun:
        limit = time.monotonic() + 300
        while not results.exists() or results.read_text().count("\n") < 3:
            assert begun.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
        begun.kill()
    whole = results.read_text()
    first = whole[: whole.rindex("\n") + 1]
    results.write_text(first + '{"order": 5, "wa')  # as a kill in the middle of a line leaves it
    known = first.count("\n") - 1
    assert "add --resume" in bench.refused("--collect", orders)
    done = bench("--collect", orders, "--resume")
    assert f"{ORDERS - known} orders measured, {known} known before" in done.out, done
    assert results.read_text().startswith(first)
    report = collect_results(orders, results, tmp_path / "samples.jsonl")
    assert (report.measured, report.missing) == (6, 0)
    assert f"0 orders measured, {ORDERS} known before" in bench("--collect", orders, "--resume").out


def test_orders_that_failed_are_tried_again(bench: Program, orders: Path) -> None:
    results = orders / RESULTS_FILE
    assert bench("--collect", orders).code == 0
    lines = results.read_text().splitlines()
    lines[2] = json.dumps({"order": 1, "failed": "too hot"})
    results.write_text("\n".join(lines) + "\n")
    assert f"1 orders measured, {ORDERS - 1} known" in bench("--collect", orders, "--resume").out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("phonebit-orders 4", "phonebit-orders 3", "orders.txt:1: got '3', expected a whole"),
        ("phonebit-orders", "orders", "orders.txt:1: got 'orders', expected 'phonebit-orders'"),
        ("probe probe.pbit", "probe ../probe.pbit", "is no name of a file"),
        ("/0:7:0:64 repeats", "/- repeats", "a processor has no part of the noise probe"),
        (" usual 25 ", " usual 101 ", "got '101', expected a whole number from 0 to 100"),
        (" turns 1 ", " turns 0 ", "got '0', expected a whole number from 1"),
        (" most 110 ", " most 90 ", "got '90', expected a whole number from 100"),
        ("order 1 ", "order 7 ", "got '7'"),
        ("way svm", "weigh svm", "a line of an unknown kind 'weigh'"),
        ("threads 1\n", "threads 0\n", "got '0', expected a whole number from 1"),
        (" -/0", " -:0", "is no pair of parts"),
        (" -/0:", " -/", "got ''"),
        (" parts ", " part ", "got 'part', expected 'parts'"),
    ],
)
def test_damaged_orders_are_named(
    bench: Program, orders: Path, old: str, new: str, message: str
) -> None:
    listed = orders / "orders.txt"
    text = listed.read_text()
    assert old in text
    listed.write_text(text.replace(old, new))
    assert message in bench.refused("--collect", orders)


def test_results_of_other_orders_or_settings_are_not_mixed(
    bench: Program, orders: Path, tmp_path: Path
) -> None:
    assert bench("--collect", orders).code == 0
    refused = bench.refused("--collect", orders, "--resume", "--hint", "power")
    assert "other settings" in refused
    (orders / RESULTS_FILE).write_text("{}\n")
    assert "results of other orders" in bench.refused("--collect", orders, "--resume")
    assert "two processors" in bench.refused("--collect", orders, "--device", "gpu")


@pytest.mark.slow
def test_samples_of_both_processors_train_predictors(bench: Program, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    folder, samples = tmp_path / "orders", tmp_path / "samples.jsonl"
    write_measurement_job(folder, CollectionPlan(40, (1,), **SHORT))
    done = bench("--collect", folder)
    assert done.code == 0, done
    report = collect_results(folder, folder / RESULTS_FILE, samples)
    assert (report.measured, report.missing) == (40, 0)
    found = read_samples(samples)
    assert len(found.handovers) >= 15 and any(sample.is_shared for sample in found.parts)
    profile = tmp_path / "profile.json"
    with pytest.raises(SystemExit) as ended:
        app(["train-predictor", str(samples), "-o", str(profile)], prog_name="phonebit")
    assert ended.value.code in (0, None)
    predictor = read_profile(profile).predictor("finegrained", 1)
    layer = found.parts[0].layer
    assert predictor.microseconds_of(Processor.GPU, [(layer, layer.whole)])[0] > 0
