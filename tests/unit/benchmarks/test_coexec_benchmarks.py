"""The parts of benchmarks/coexec that need neither OpenCL nor a quiet machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.coexec import (
    codl,
    confinement,
    document,
    experiment,
    layer_files,
    layer_tables,
    layers,
    network_search,
    networks,
    paper_networks,
    plans,
    predictors,
    prepare_profile,
    sync,
    tables,
    turns,
    ulayer,
)
from benchmarks.coexec import testbed as testbeds
from benchmarks.layer_shapes import binary_layer
from benchmarks.records import provenance
from phonebit import Network
from phonebit.converter.cost import parameter_count, total_macs
from phonebit.devices.loading import EngineOptions
from phonebit.energy import NoSourceError
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.models.networks import build
from phonebit.planner import verify_plan
from phonebit.planner.measure import engines
from phonebit.planner.measure.measuring import LayerTimes
from phonebit.planner.measure.orders import CollectionPlan, Way
from phonebit.planner.measure.sampling import sample_layers
from phonebit.planner.plan.execution_plan import ExecutionPlan, Processor
from phonebit.planner.predict.profile import write_profile
from phonebit.planner.predict.training import Trainer, split_by_layer
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stages import Placement, Stage, as_plan
from support.made_up_device import (
    CONTEXT,
    FACTS,
    MadeUpDevice,
    MadeUpEngine,
    collect_here,
    made_up_samples,
    spiked,
    stepped,
)
from support.made_up_profile import KEY, made_up_profile
from support.planner_times import straight

# --- measuring ------------------------------------------------------------------------------------


def test_a_budget_is_shared_equally() -> None:
    budget = turns.Budget(100)
    assert 24 < budget.share(4).seconds <= 25
    assert turns.Budget(0).left_s == 0


class Undisturbed:
    """The noise probe of a machine that nothing disturbs."""

    def measure_quietly(self, processors: Any, measure: Any) -> Any:
        assert set(processors) == set(Processor)
        return measure()

    def layer(self) -> LayerTimes:
        return LayerTimes(20.0, 10.0, 10.0)


def test_candidates_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("WARM_UP_S", "COUNTED_S"):
        monkeypatch.setattr(turns, seconds, 0)
    calls: list[str] = []
    candidates = {name: lambda name=name: calls.append(name) for name in "AB"}
    result = turns.compete(candidates, Undisturbed(), turns.Budget(0))
    assert result["rounds"] == turns.MIN_ROUNDS
    assert set(result["times"]) == {"A", "B"}
    assert calls == list("ABAB") + list("AABB") * result["rounds"]  # one of two does not count


def test_a_turn_begins_with_calls_that_do_not_count() -> None:
    begun: list[float] = []

    def call() -> None:
        begun.append(time.perf_counter())
        time.sleep(0.003)

    times = turns.timed(call, Undisturbed())()
    assert begun[-1] - begun[0] >= turns.WARM_UP_S
    assert 3 <= times["total"] < 1e3 * (time.perf_counter() - begun[0]) - 15


def test_results_are_added_and_failures_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    files = experiment
    files.store(path, "g1c1-avx2", "sync", "no device")
    files.store(path, "g1c1-avx2", "layers", {"rows": []})
    testbed = json.loads(path.read_text())["testbeds"]["g1c1-avx2"]
    assert testbed["failures"] == {"sync": "no device"}
    assert testbed["layers"]["rows"] == []
    files.store(path, "g1c1-avx2", "sync", {"bytes": {}})
    assert json.loads(path.read_text())["testbeds"]["g1c1-avx2"]["failures"] == {}
    assert files.read(path)["testbeds"].keys() == {"g1c1-avx2"}


@pytest.mark.parametrize(
    ("version", "processor"),
    [
        ("OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3", "znver3"),
        ("OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-haswell", "haswell"),
        (
            "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-icelake-client",
            "icelake-client",
        ),
        ("OpenCL 3.0 PoCL HSTR: cpu-aarch64-unknown-linux-gnu-cortex-a76", "cortex-a76"),
        ("OpenCL 3.0 CUDA", "Device X"),
    ],
)
def test_results_name_the_driver_and_what_it_compiles_for(
    monkeypatch: pytest.MonkeyPatch, version: str, processor: str
) -> None:
    device = SimpleNamespace(
        api="opencl", index=1, name="Device X", platform="Platform", version=version,
        driver_version="3.0-rc2",
    )  # fmt: skip
    monkeypatch.setattr("phonebit.devices.target.gpu_device", lambda _name: device)
    monkeypatch.setattr("phonebit.devices.environment.gpu_device", lambda _name: device)
    named = experiment.context("gpu:1+cpu")["opencl"]
    assert named == {
        "device": "Device X",
        "platform": "Platform",
        "version": version,
        "driver": "3.0-rc2",
        "compiles_for": processor,
    }
    assert "opencl" not in experiment.context("cpu")
    text = provenance(CONTEXT | {"opencl": named}, "measure", by_opencl=True)
    assert text == (
        f"A CPU, 2 cores; Platform, 3.0-rc2, compiling for {processor}; commit abc; 2026-01-01: "
        "`measure`"
    )


# --- layers ---------------------------------------------------------------------------------------


def test_layers_are_those_of_the_paper_within_limits() -> None:
    cases = [*layer_files.linear_cases(), *layer_files.convolution_cases()]
    low, high = layer_files.MACS
    assert all(low <= layer_files.macs_of(case) <= high for case in cases)
    assert {case.kernel_h for case in cases} == {1, 3, 5, 7}
    assert {case.stride_h for case in layer_files.linear_cases()} == {1}
    assert len({layer_files.name_of(case) for case in cases}) > 2000


def test_a_file_of_one_layer_has_the_layer_that_was_asked_for(tmp_path: Path) -> None:
    from phonebit import Network

    case = binary_layer((9, 7), 32, 40, 3, 2)
    path, place = layer_files.stored_layer(case, tmp_path)
    network = Network.load(path, device="cpu", threads=1)
    layer = network.layers[place]
    assert (layer.kind, layer.macs) == ("binary_conv2d", 5 * 4 * 40 * 9 * 32)
    assert (network.outputs[0].shape, network.outputs[0].dtype) == ((5, 4, 40), "bit")


class FakeLayer:
    """A layer whose best cut is at 40 channels of the GPU."""

    channels = 64

    def channels_split(self, gpu_channels: int, repeats: int) -> SimpleNamespace:
        return SimpleNamespace(total_us=10.0 + abs(gpu_channels - 40))


def test_the_search_looks_at_every_cut() -> None:
    times = layers.search(FakeLayer())
    assert sorted(times) == list(range(8, 64, 8))
    assert min(times, key=times.__getitem__) == 40
    assert layer_files.in_turns(FakeLayer(), [0, 40], 1, 3) == {0: 50.0, 40: 10.0}


def test_a_share_is_of_the_gain_not_of_the_speed() -> None:
    """Fine-Grained, table 2, Moto 2022: 1.16x of 1.22x is 95 % of the speed, 73 % of the gain."""
    assert tables.share_of_gain(1.16, 1.22) == "73%"
    assert tables.share_of_gain(0.98, 1.2) == "-10%"
    assert tables.share_of_gain(1.0, 1.0) == "-"


def test_the_ablation_is_of_the_same_layers() -> None:
    """Means of speed-ups over the better processor; testbeds without it are left out."""
    us = {"cpu": 30.0, "gpu": 20.0, "finegrained": 10.0, "finegrained_plain": 16.0, "events": 25.0}
    row = {"threads": 1, "kind": "linear", "us": us}
    results = {"new": {"layers": {"rows": [row, row | {"us": us | {"finegrained": 20.0}}]}}}
    table = layer_tables.ablation_table(results)
    assert "| new | 1 | linear | 1.50x | 1.25x | 0.80x |" in table
    less = {name: of for name, of in us.items() if name != "events"}
    assert layer_tables.ablation_table({"old": {"layers": {"rows": [row | {"us": less}]}}}) == ""


def test_a_profile_is_of_500_layers_of_each_kind() -> None:
    sampled = list(islice(sample_layers(experiment.SEED), prepare_profile.LAYERS))
    for is_of_kind in predictors.GROUPS.values():
        assert sum(map(is_of_kind, sampled)) >= 500
    drawn = list(islice(layer_files.draw(experiment.SEED), layers.MAX_LAYERS))
    assert [layer.in_w == 1 for layer in drawn].count(True) == len(drawn) // 2 == 500
    assert layers.cpu_threads(1) == [1] and layers.cpu_threads(4) == [1, 3]


# --- plans ----------------------------------------------------------------------------------------


@pytest.fixture
def planner(tmp_path: Path) -> plans.Planner:
    """By the models of a device whose CPU is as fast as its GPU."""
    write_profile(tmp_path / "profile.json", made_up_profile())
    return plans.Planner(tmp_path / "profile.json", 1)


def test_every_variant_makes_a_plan_that_it_may_make(
    planner: plans.Planner, tmp_path: Path
) -> None:
    network = tmp_path / "network.pbit"
    build("vgg_small", network)
    found = {}
    for name, variant in plans.VARIANTS.items():
        planned = planner.plan(network, variant.method)
        found[name] = {str(stage.placement) for stage in planned.stages}
        assert planned.plan.device == KEY
        assert planned.total_us <= planned.home_us
        assert 0 < networks.attainable_us(planned.costs, planned.home) <= planned.home_us
    assert found["layer_to_processor"] <= {"cpu", "gpu"}
    assert "chain" in found["codl"]
    assert "channels" in found["finegrained"]


def test_the_predicted_cut_of_a_layer_balances_both_processors(
    planner: plans.Planner, tmp_path: Path
) -> None:
    large = layer_files.stored_layer(binary_layer((64, 1), 512, 256), tmp_path)
    assert planner.channels(*large, "finegrained") == 128
    small = layer_files.stored_layer(binary_layer((2, 1), 32, 64), tmp_path)
    assert planner.channels(*small, "finegrained") == 0


# --- the papers' networks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "million_parameters", "giga_macs"),
    [("birealnet34", 21.8, 3.66), ("inception_v3", 23.9, 5.71)],  # as the float networks
)
def test_the_papers_networks_have_their_sizes(
    name: str, million_parameters: float, giga_macs: float
) -> None:
    graph = paper_networks.EXTRA[name]("outline")
    parameters = sum(parameter_count(node.op) for node in graph.nodes)
    assert parameters / 1e6 == pytest.approx(million_parameters, rel=0.01)
    assert total_macs(graph) / 1e9 == pytest.approx(giga_macs, rel=0.01)
    assert graph.types[graph.outputs[0]].shape == (1, 1, 1000)


# --- searching networks ---------------------------------------------------------------------------


def test_the_search_finds_the_best_of_its_grid(tmp_path: Path) -> None:
    """Passes take what each layer takes where it is: even layers want halves, odd ones the CPU."""
    file = tmp_path / "network.pbit"
    build("vgg_small", file)
    contents = read_contents(file)
    layers = NetworkGraph.of(contents).layers
    shapes = [layer.geometry for layer in layers]
    wanted = {shape: place % 2 for place, shape in enumerate(dict.fromkeys(shapes))}

    def us_of(stages: list[Stage]) -> float:
        us = 0.0
        for stage in stages:
            [parts] = stage.parts
            wants_cpu = wanted[shapes[parts.layer]] or not layers[parts.layer].geometry.can_cut_rows
            best = Placement.CPU if wants_cpu else Placement.ROWS
            half = layers[parts.layer].shape[0] // 2
            us += 1 if (stage.placement, stage.cut) in ((best, 0), (best, half)) else 3
        return us

    def pass_us(tried: Sequence[list[Stage]]) -> list[float]:
        return list(map(us_of, tried))

    found, searched = network_search.search(layers, pass_us, lambda: True)
    assert us_of(found) == len(layers)
    assert searched == len(set(shapes))
    assert any(stage.placement == Placement.ROWS for stage in found)
    verify_plan(contents, as_plan(found, "a device", "user", 0.0))
    best_single, none = network_search.search(layers, pass_us, lambda: False)
    assert none == 0
    assert {stage.placement for stage in best_single} == {Placement.CPU}


# --- CoDL's figures -------------------------------------------------------------------------------


def test_facts_of_a_plan_count_its_layers(planner: plans.Planner, tmp_path: Path) -> None:
    file = tmp_path / "network.pbit"
    build("vgg_small", file)
    facts = {way: codl.plan_facts(planner.plan(file, method)) for way, method in codl.WAYS.items()}
    layers = len(read_contents(file).ops)
    for of_way in facts.values():
        assert sum(of_way["layers"].values()) == layers
        assert sum(of_way["chains"]) == of_way["layers"].get("chain", 0)
    assert facts["codl"]["chains"] and not facts["without_chains"]["chains"]
    assert "channels" not in facts["rows"]["layers"] and "rows" not in facts["channels"]["layers"]


def test_kernels_and_models_are_told_apart(tmp_path: Path) -> None:
    """CoDL's tables 3 and 4, on a device whose law its predictor finds."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    samples = made_up_samples(tmp_path / "samples.jsonl", stepped, 90)
    profile = Trainer(samples, 2).fit(samples.parts, samples.handovers)
    rows = predictors.implementations(profile, samples.parts)
    convolutions = [part for part in samples.parts if part.layer.is_convolution]
    assert sum(row["parts"] for row in rows) == len(convolutions)
    kernels = {row["kernel"]: row for row in rows}
    assert kernels["bconv2d_tiled"]["processor"] == "gpu"
    assert kernels["conv2d_f32"]["processor"] in ("gpu", "cpu, 1 threads")
    assert kernels["bconv2d_tiled"]["mape"] < 0.02
    sizes = predictors.model_bytes(profile)
    assert 0 < sizes["ulayer"] < sizes["codl"] < sizes["finegrained"]


def test_the_dispatch_tells_more_than_the_geometry(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    samples = made_up_samples(tmp_path / "samples.jsonl", spiked, 210)
    learning, testing = split_by_layer(samples.parts)
    profile = Trainer(samples, 120).fit(learning, samples.handovers)
    found = {
        (accuracy.predictor, accuracy.processor): accuracy.mape
        for prediction in predictors.predictions(profile, testing)
        for accuracy in prediction.accuracies()
        if accuracy.family == "binary_conv2d"
    }
    assert found["finegrained", "gpu"] < found[predictors.PLAIN, "gpu"] * 0.8


def no_source(*_arguments: object, **_options: object) -> object:
    raise NoSourceError("gpu", {"rapl": "no package zone"})


def test_energy_without_a_source_is_said_to_be_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codl, "measure_energy", no_source)
    found = codl.energy_of(cast(Network, SimpleNamespace(inputs=[])))
    assert list(found) == ["not_measured"] and "no package zone" in found["not_measured"]


# --- all experiments ------------------------------------------------------------------------------


@dataclass
class PlannedEngine(MadeUpEngine):
    """A file on the made-up device, with a plan."""

    plan: ExecutionPlan | None = None

    @property
    def layers(self) -> list[Any]:
        return [SimpleNamespace(name=shape.op) for shape in self.shapes]

    def measure_pass(self, repeats: int) -> dict[str, Any]:
        us = np.zeros((2, len(self.shapes)))
        for part in self.plan.parts:
            of = self.shapes[part.layer], part.processor, part.part, self.threads
            us[part.processor, part.layer] = self.law(*of)
        cpu, gpu = us.tolist()
        return {"total_us": us.max(axis=0).sum(), "cpu_us": cpu, "gpu_us": gpu}


class OnTheCpu(Network):
    """A network on both processors, after auto-selection: the CPU does the GPU's part, too."""

    @property
    def coexec(self) -> dict[str, Any]:
        return {"is_on_trial": False, "cpu_ms": 1.0}

    @classmethod
    def load(cls, path: Path, device: str, plan: Any = None, **options: Any) -> Network:
        if plan is not None:
            verify_plan(read_contents(path), plan)
        return super().load(path, "cpu:scalar", **options)


def open_made_up(path: Path, device: str, options: EngineOptions, plan: Any = None) -> Any:
    made_up = MadeUpDevice(stepped)
    wanted = Way(options.get("sharing", "auto"), options.get("synchronization", "auto"))
    ways = (
        way
        for way in made_up.ways
        if all(of in (has, "auto") for of, has in zip(wanted, way, strict=True))
    )
    found = made_up(path, options["threads"], next(ways, wanted))
    return PlannedEngine(path, options["threads"], stepped, found.way, plan)


EXPERIMENTS = {
    "testbed": confinement.measure,
    "sync": sync.measure,
    "profile": prepare_profile.measure,
    "predictors": predictors.measure,
    "layers": layers.measure,
    "network_vgg16": partial(networks.measure_network, "vgg16"),
    "ulayer_vgg16": partial(ulayer.measure_network, "vgg16"),
    "codl_vgg16": partial(codl.measure_network, "vgg16"),
    "search_vgg_small": partial(network_search.measure_network, "vgg_small"),
}


def collect(path: Path, plan: CollectionPlan, **_: object) -> None:
    collect_here(path, FACTS, plan, MadeUpDevice(stepped))


def test_all_experiments_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a made-up device; what they find makes the page of results."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    tiny = file_bytes(straight(2))
    (tmp_path / "networks").mkdir()
    for name in ("vgg16-f32", "vgg16-i8", "vgg_small-f32"):
        (tmp_path / "networks" / f"{name}.pbit").write_bytes(tiny)
    monkeypatch.setattr(testbeds.Testbed, "enter", lambda testbed: None)
    monkeypatch.setattr(experiment, "pocl_device", lambda: "gpu:0")
    monkeypatch.setattr(experiment, "Network", OnTheCpu)
    monkeypatch.setattr(experiment, "context", lambda _device="cpu": CONTEXT)
    for module in (engines, experiment):
        monkeypatch.setattr(module, "open_measuring_engine", open_made_up)
    monkeypatch.setattr(prepare_profile, "collect_samples", collect)
    monkeypatch.setattr(confinement, "task_cores", lambda: {1: ("pocl", frozenset({0}))})
    monkeypatch.setattr(confinement, "REFERENCE", binary_layer(8, 64, 64, 3))
    shortest = {"WARM_UP_S": 0, "COUNTED_S": 0, "MIN_ROUNDS": 1, "MAX_ROUNDS": 1}
    for name, value in shortest.items():
        monkeypatch.setattr(turns, name, value)
    monkeypatch.setattr(codl, "measure_energy", no_source)
    profile = replace(made_up_profile(), device=FACTS)
    monkeypatch.setattr(prepare_profile, "train", lambda _, path: write_profile(path, profile))
    monkeypatch.setattr(predictors, "Trainer", partial(Trainer, trees=2))
    file = tmp_path / "coexec.json"
    options = ["--testbed=g1c1-scalar", "--smoke", f"--folder={tmp_path}", f"--json={file}"]
    for key in EXPERIMENTS:
        monkeypatch.setattr(sys, "argv", ["", *options, f"--only={key}"])
        assert experiment.main(EXPERIMENTS, None) == 0
    text = document.machine_section(experiment.read(file))
    assert text.count("\n#### ") == 9
    assert "| g1c1-scalar | layer to processor | 1 |" in text
    assert "| without augmentation | events in place of polling |" in text
