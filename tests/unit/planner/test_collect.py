"""Collecting samples: what is measured, how it is kept, and that it goes on after interruptions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import phonebit.devices.gpus
import phonebit.devices.loading
from phonebit.devices.loading import EngineOptions
from phonebit.devices.tuning_store import store_tuning
from phonebit.errors import DeviceError, InputError
from phonebit.planner import OutputPart, Processor, cost_models
from phonebit.planner.measure import engines
from phonebit.planner.measure.measuring import PROBE
from phonebit.planner.measure.orders import WAYS, CollectionPlan, Way
from phonebit.planner.measure.sampling import sample_cuts
from phonebit.planner.predict.profile import read_profile
from phonebit.planner.predict.samples import MIN_US, PartSample, begin_samples, read_samples
from support.cli_process import Cli
from support.made_up_device import (
    FACTS,
    TUNING,
    MadeUpDevice,
    collect_here,
    made_up_samples,
    spiked,
)

PLAN = CollectionPlan(12, (1, 2), cuts=2, turns=1, rounds=1)


def test_every_layer_is_measured_whole_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    report = collect_here(path, FACTS, PLAN, MadeUpDevice())
    assert (report.measured, report.known, report.failed) == (24, 0, {})
    samples = read_samples(path)
    assert samples.device == FACTS
    layers = {sample.layer for sample in samples.parts}
    assert len(layers) == 12
    for layer in layers:
        for threads in (1, 2):
            own = [s for s in samples.parts if (s.layer, s.threads) == (layer, threads)]
            wholes = {s.processor for s in own if s.part == layer.whole}
            assert wholes == set(Processor)
            cuts = [s for s in own if s.is_shared]
            assert len(cuts) == 2 * len(sample_cuts(layer, PLAN.cuts))
    on_gpu = [sample for sample in samples.parts if sample.processor == Processor.GPU]
    assert all(sample.variant for sample in on_gpu)
    assert {s.variant for s in samples.parts if s.processor == Processor.CPU} >= {"conv2d_u8"}
    assert {(s.sharing, s.synchronization) for s in samples.handovers} == {("svm", "polling")}


def test_parts_cover_the_layer() -> None:
    for cpu, gpu in sample_cuts(PROBE, 2):
        assert cpu is not None and gpu is not None
        assert PROBE.operations(cpu) + PROBE.operations(gpu) == PROBE.operations(PROBE.whole)
        assert gpu.row_begin == gpu.channel_begin == 0


def test_an_interrupted_collection_goes_on(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "samples.jsonl"
    device = MadeUpDevice()
    collect_here(whole, FACTS, PLAN, device)
    with pytest.raises(KeyboardInterrupt):
        collect_here(path, FACTS, PLAN, MadeUpDevice(fails_from=device.opened - 16))
    begun = path.read_text()
    path.write_text(begun[:-40])  # the last line is cut off
    report = collect_here(path, FACTS, PLAN, MadeUpDevice())
    assert report.known > 0
    assert report.known + report.measured == 24
    parts = {(s.layer, s.threads, s.processor, s.part) for s in read_samples(path).parts}
    expected = {(s.layer, s.threads, s.processor, s.part) for s in read_samples(whole).parts}
    assert parts == expected
    again = MadeUpDevice()
    size = path.stat().st_size
    assert collect_here(path, FACTS, PLAN, again).measured == 0
    assert again.opened == 1  # a look at what the device has, no more
    assert path.stat().st_size == size


class Moody(MadeUpDevice):
    """Twice as slow in its first half of so many calls."""

    slow_calls: int = 0

    def __call__(self, path: Path, threads: int, way: Way) -> Any:
        engine = super().__call__(path, threads, way)
        if self.opened <= self.slow_calls:
            engine.law = lambda *part: 2 * spiked(*part)
        return engine


def test_rounds_follow_one_another_and_the_minimum_counts(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    device = Moody()
    collect_here(once, FACTS, PLAN, device)
    device.slow_calls = device.opened + 41  # well into the first round
    report = collect_here(twice, FACTS, replace(PLAN, rounds=2), device)
    assert report.measured == 2 * 24
    first, minimum = read_samples(once), read_samples(twice)
    assert [(part.key, part.us) for part in minimum.parts] == [
        (part.key, part.us) for part in first.parts
    ]
    assert {part.rounds for part in minimum.parts} == {2}
    assert len(minimum.handovers) == 2 * len(first.handovers)


class Clocked(MadeUpDevice):
    """Its clock falls and rises with every ten files that are opened."""

    def __call__(self, path: Path, threads: int, way: Way) -> Any:
        engine = super().__call__(path, threads, way)
        engine.law = lambda *part: spiked(*part) * (1.08 if self.opened // 10 % 3 == 2 else 1.0)
        return engine


def test_samples_are_those_of_the_usual_clock(tmp_path: Path) -> None:
    steady, clocked = tmp_path / "steady.jsonl", tmp_path / "clocked.jsonl"
    collect_here(steady, FACTS, PLAN, MadeUpDevice())
    collect_here(clocked, FACTS, PLAN, Clocked())
    raw = {json.loads(line).get("canary_us") for line in clocked.read_text().splitlines()[1:]}
    assert len(raw - {None}) == 2 * 3  # clocks; the GPU, and the CPU by counts of threads
    expected = {part.key: part.us for part in read_samples(steady).parts}
    found = {part.key: part.us for part in read_samples(clocked).parts}
    assert found == pytest.approx(expected, rel=1e-3)


def test_times_that_no_clock_resolves_stay_what_they_are() -> None:
    sample = PartSample(PROBE, Processor.CPU, 1, PROBE.whole, "any", MIN_US, 4.0)
    assert sample.with_probe(5.0) == replace(sample, canary_us=5.0)


def test_a_round_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    path, plan = tmp_path / "samples.jsonl", replace(PLAN, rounds=2)
    collect_here(path, FACTS, PLAN, MadeUpDevice())
    with pytest.raises(KeyboardInterrupt):
        collect_here(path, FACTS, plan, MadeUpDevice(fails_from=30))
    assert {part.rounds for part in read_samples(path).parts} == {1, 2}
    report = collect_here(path, FACTS, plan, MadeUpDevice())
    assert report.known > 24
    assert report.known + report.measured == 2 * 24
    assert {part.rounds for part in read_samples(path).parts} == {2}


def test_a_collection_can_be_made_longer(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    collect_here(path, FACTS, replace(PLAN, layers=5), MadeUpDevice())
    report = collect_here(path, FACTS, PLAN, MadeUpDevice())
    assert (report.known, report.measured) == (10, 14)


def test_layers_that_fail_are_reported_and_left_out(tmp_path: Path) -> None:
    class Picky(MadeUpDevice):
        def __call__(self, path: Path, threads: int, way: Way) -> Any:
            engine = super().__call__(path, threads, way)
            if any(shape.op == "conv2d" for shape in engine.shapes):
                raise DeviceError("out of registers")
            return engine

    report = collect_here(tmp_path / "samples.jsonl", FACTS, PLAN, Picky())
    assert report.measured > 0
    assert set(report.failed.values()) == {"out of registers"}
    assert all(
        sample.layer.op != "conv2d" for sample in read_samples(tmp_path / "samples.jsonl").parts
    )


def test_a_device_that_shares_in_no_way_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot work together: has no copy"):
        collect_here(tmp_path / "samples.jsonl", FACTS, PLAN, MadeUpDevice(ways=()))
    assert len(WAYS) == 9


def test_samples_of_another_device_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    begin_samples(path, FACTS)
    other = replace(FACTS, keys={1: "another"})
    with pytest.raises(InputError, match="another device") as error:
        begin_samples(path, other)
    assert str(path) in str(error.value)


def test_samples_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They take hours on a phone."""
    path = tmp_path / "samples.jsonl"
    begin_samples(path, FACTS)
    record = json.loads(path.read_text())
    record["device"]["cpu"]["has_tiles"] = False
    path.write_text(json.dumps(record) + "\n")
    assert read_samples(path).device == FACTS


TRANSFER = {"handover": [1, 2], "sharing": "svm", "synchronization": "polling", "threads": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: "{", "not JSON"),
        (lambda record: "[]", "a JSON object"),
        (lambda record: json.dumps({**record, "us": -1.0}), "us > 0"),
        (lambda record: json.dumps({**record, "us": float("nan")}), "part.us: damaged"),
        (lambda record: json.dumps({**record, "part": [0, 99999, 0, 8]}), "a part of the layer"),
        (lambda record: json.dumps({**record, "processor": "npu"}), "part.processor: damaged"),
        (lambda record: json.dumps({**record, "geometry": {"in_h": 3}}), "operand_channels"),
        (lambda record: json.dumps({"handover": [1], "us": 3}), "handover: a field is missing"),
        (lambda record: json.dumps(TRANSFER | {"us": -1.0}), "not a measured handover"),
        (lambda record: json.dumps(TRANSFER | {"us": float("inf")}), "handover.us: damaged"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "samples.jsonl"
    collect_here(path, FACTS, replace(PLAN, layers=2), MadeUpDevice())
    lines = path.read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if "part" in json.loads(line))
    lines[place] = change(json.loads(lines[place]))
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=message) as error:
        read_samples(path)
    assert f"{path}:{place + 1}" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no samples"),
        (b'{"device": {}}\n', "device: a field is missing"),
        (b'{"device": {"keys": {"x": ""}, "gpu": {}, "cpu": {}}}\n', "device.keys: damaged"),
        (b'{"op": "x"}\n', "a measured part: a field is missing"),
        (json.dumps(TRANSFER | {"us": 1.0}).encode() + b"\n", "without facts about a device"),
        (b"\xff\xfe\n", "not a file of samples"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_samples(path)


def test_a_cpu_computes_from_a_whole_word_on() -> None:
    part = OutputPart(0, 4, 40, 64)
    on_cpu = PartSample(PROBE, Processor.CPU, 1, part, "any", 9.0, 4.0)
    assert on_cpu.computed == OutputPart(0, 4, 32, 64)
    assert replace(on_cpu, processor=Processor.GPU).computed == part


@pytest.fixture
def made_up_network(monkeypatch: pytest.MonkeyPatch) -> MadeUpDevice:
    """``phonebit collect`` meets the made-up device instead of this machine's."""
    made_up = MadeUpDevice()

    def open_engine(path: Path, device: str, options: EngineOptions) -> Any:
        if device == "cpu":
            layers = [SimpleNamespace(kernel="bconv2d_b32__avx512")] * 4
            return SimpleNamespace(isa="avx512", layers=layers)
        assert device == "gpu:1+cpu"
        assert options["plan"] is not None
        way = Way(options.get("sharing", "auto"), options.get("synchronization", "auto"))
        return made_up(path, options["threads"], made_up.ways[0] if way.sharing == "auto" else way)

    gpu: Any = SimpleNamespace(
        **{name: getattr(FACTS.gpu, name) for name in ("name", "vendor", "family", "local_bytes")},
        platform="made-up", driver_version="1", compute_units=8, clock_mhz=1000,
        capabilities={"images": True},
    )  # fmt: skip
    key = phonebit.devices.gpus.device_key(gpu)
    store_tuning(key, TUNING)  # in these tests' own cache folder
    monkeypatch.setattr(engines, "open_engine", open_engine)
    monkeypatch.setattr(cost_models, "gpu_device", lambda _name: gpu)
    return made_up


def test_commands_lead_from_a_device_to_a_profile(
    cli: Cli, made_up_network: MadeUpDevice, tmp_path: Path
) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    samples, profile = tmp_path / "samples.jsonl", tmp_path / "profile.json"
    options = [
        "-o",
        samples,
        "--device",
        "gpu:1+cpu",
        "--samples",
        40,
        "--turns",
        1,
        "--threads",
        "1,2",
    ]
    done = cli("collect", *options)
    assert done.code == 0, done.err
    assert "80 layers measured, 0 known" in done.out
    assert "already" in cli.refused("collect", *options)
    assert "0 layers measured, 80 known" in cli("collect", *options, "--resume").out
    report = cli("train-predictor", samples, "-o", profile, "--json").document
    assert report["refused"] == report["refused_for_cuts"] == []
    assert report["profiles"] == [str(profile)]
    assert {entry["predictor"] for entry in report["accuracies"]} >= {
        "ulayer",
        "codl",
        "finegrained",
    }
    known = read_profile(profile)
    assert known.threads == (1, 2)
    assert known.key(2) == FACTS.keys[2]
    for threads in known.threads:
        predictor = known.predictor("finegrained", threads)
        assert predictor.microseconds_of(Processor.CPU, [(PROBE, PROBE.whole)])[0] > 0


def test_training_tells_in_a_table(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    samples = tmp_path / "samples.jsonl"
    made_up_samples(samples, spiked, 40)
    done = cli("train-predictor", samples, "-o", tmp_path / "profile.json")
    assert done.code == 0, done.err
    for text in ("MAPE", "within 10 %", "binary_conv2d", "finegrained"):
        assert text in done.out


@pytest.mark.parametrize("threads", ["0", "a", "1,,2", ""])
def test_thread_counts_are_checked(cli: Cli, tmp_path: Path, threads: str) -> None:
    text = cli.refused("collect", "-o", tmp_path / "s.jsonl", "--threads", threads)
    assert "--threads" in text


def test_too_few_samples_are_refused(cli: Cli, tmp_path: Path) -> None:
    made_up_samples(tmp_path / "samples.jsonl", spiked, 1)
    text = cli.refused("train-predictor", tmp_path / "samples.jsonl")
    assert "too few layers" in text
