"""Measurement jobs: a device without Python gives the samples that it would collect with Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phonebit.errors import DeviceError, InputError
from phonebit.planner.json_records import to_record
from phonebit.planner.measure.measurement_job import (
    ORDERS_FILE,
    PLAN_FILE,
    RESULTS_FILE,
    collect_results,
    write_measurement_job,
)
from phonebit.planner.measure.orders import CollectionPlan, Way, make_orders
from phonebit.planner.predict.samples import read_samples
from support.cli_process import Cli
from support.made_up_device import FACTS, MadeUpDevice, collect_here

PLAN = CollectionPlan(8, (1, 2), cuts=2, turns=3, rounds=2)
DEVICE = replace(FACTS, gpu=FACTS.gpu.with_tuning(""))
"""As a phone has no tuning of its own."""


def handovers(plan: CollectionPlan) -> int:
    """Orders before the first layer."""
    return sum(order.is_sync for order in make_orders(replace(plan, rounds=1)))


class MadeUpPhone:
    """Measures a folder as ``phonebit_bench --collect`` does, by the text of the orders alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.device = MadeUpDevice()
        self.results = folder / RESULTS_FILE
        self.turns: set[int] = set()

    def head(self) -> dict[str, Any]:
        gpu = to_record(DEVICE.gpu)
        told = {
            name: gpu[name] for name in gpu if name not in ("tuning", "refused", "refused_for_cuts")
        }
        return {
            "orders": self.lines()[0].split()[-1],
            "gpu": told,
            "cpu": {"isa": "avx512", "cores": 2, "probe_kernel": "bconv2d_b32__avx512"},
            "keys": {str(threads): key for threads, key in DEVICE.keys.items()},
            "ways": [list(way) for way in self.device.ways],
        }  # fmt: skip

    def lines(self) -> list[str]:
        return (self.folder / ORDERS_FILE).read_text().splitlines()

    def measure(self, maximum: int = 1 << 30) -> None:
        records = [self.head()]
        for line in [line for line in self.lines() if line.startswith("order ")][:maximum]:
            records += self.carry_out(line.split())
        self.results.write_text("".join(json.dumps(record) + "\n" for record in records))

    def carry_out(self, words: list[str]) -> list[dict[str, Any]]:
        _, number, file, index, _, threads, _, sharing, synchronization, _, turns, _ = words[:12]
        way = self.device.ways[0] if sharing == "any" else Way(sharing, synchronization)
        if way not in self.device.ways:
            return []
        engine = self.device(self.folder / file, int(threads), way)
        self.turns.add(int(turns))
        times, launches = [], []
        for pair in words[12:]:
            cpu, gpu = self.parts(pair)
            told = engine.measure_layer(int(index), cpu, gpu)
            times.append([told[f"{side}_us"] for side in ("total", "cpu", "gpu")])
            launches.append([] if gpu is None else list(engine.dispatch(int(index), gpu)))
        noise = self.noise(int(threads))
        answer = {"order": int(number), "way": way, "times_us": times, "canary_us": noise}
        return [answer | {"launches": launches}]

    def noise(self, threads: int) -> list[float]:
        [words] = [line.split() for line in self.lines() if line.startswith("canary ")]
        engine = self.device(self.folder / words[1], threads, self.device.ways[0])
        told = engine.measure_layer(int(words[2]), *self.parts(words[3]))
        return [told["cpu_us"], told["gpu_us"]]

    @staticmethod
    def parts(pair: str) -> list[Any]:
        return [
            None if text == "-" else tuple(int(side) for side in text.split(":"))
            for text in pair.split("/")
        ]


@pytest.fixture
def phone(tmp_path: Path) -> MadeUpPhone:
    folder = tmp_path / "orders"
    write_measurement_job(folder, PLAN)
    return MadeUpPhone(folder)


def test_a_phone_s_samples_are_those_of_collecting_there(
    phone: MadeUpPhone, tmp_path: Path
) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    collect_here(here, DEVICE, PLAN, MadeUpDevice())
    phone.measure()
    report = collect_results(phone.folder, phone.results, there)
    assert (report.measured, report.missing, report.failed) == (32, 0, {})
    assert phone.turns == {PLAN.turns}
    assert there.read_text() == here.read_text()


def test_results_of_a_part_become_samples_and_the_rest_is_added_later(
    phone: MadeUpPhone, tmp_path: Path
) -> None:
    samples = tmp_path / "samples.jsonl"
    phone.measure(maximum=handovers(PLAN) + 5)
    cut_off = phone.results.read_text()[:-30]
    phone.results.write_text(cut_off)
    report = collect_results(phone.folder, phone.results, samples)
    assert (report.measured, report.known) == (4, 0)
    assert report.missing == 28 + handovers(PLAN)
    phone.measure()
    report = collect_results(phone.folder, phone.results, samples)
    assert (report.measured, report.known, report.missing) == (28, 4, 0)
    assert len(read_samples(samples).handovers) > 2 * 2 * 5


def test_the_same_job_may_be_written_again_and_another_one_not(
    phone: MadeUpPhone,
) -> None:
    files = write_measurement_job(phone.folder, PLAN)
    assert files[0].name == ORDERS_FILE
    assert {file.name for file in files} == {
        path.name for path in phone.folder.iterdir() if path.name != PLAN_FILE
    }
    with pytest.raises(InputError, match="another measurement job"):
        write_measurement_job(phone.folder, replace(PLAN, seed=1))


def test_layers_that_the_phone_could_not_run_are_reported(
    phone: MadeUpPhone, tmp_path: Path
) -> None:
    phone.measure()
    lines = phone.results.read_text().splitlines()
    lines[-3] = json.dumps({"order": json.loads(lines[-3])["order"], "failed": "out of registers"})
    phone.results.write_text("\n".join(lines) + "\n")
    report = collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")
    assert report.measured == 31
    assert list(report.failed.values()) == ["out of registers"]


def test_a_phone_that_ran_nothing_is_an_error(phone: MadeUpPhone, tmp_path: Path) -> None:
    orders = enumerate(make_orders(PLAN))
    failures = [{"order": number, "failed": "no memory"} for number, _ in orders]
    records = [phone.head(), *failures]
    phone.results.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(DeviceError, match="no layer could be measured: no memory"):
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")


def test_an_order_that_was_measured_again_counts_once(phone: MadeUpPhone, tmp_path: Path) -> None:
    phone.measure()
    lines = phone.results.read_text().splitlines()
    failed = json.dumps({"order": 0, "failed": "too hot"})
    phone.results.write_text("\n".join([lines[0], failed, *lines[1:], lines[1]]) + "\n")
    report = collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")
    assert (report.measured, report.failed) == (32, {})


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (1, lambda record: record.update(orders="0" * 16), "was expected"),
        (1, lambda record: record.pop("gpu"), "gpu"),
        (1, lambda record: record["gpu"].pop("vendor"), "gpu: a field is missing .*vendor"),
        (1, lambda record: record.update(ways=[["svm", "shouting"]]), "unknown ones: .*shouting"),
        (1, lambda record: record.update(ways=[]), "no way of sharing"),
        (2, lambda record: record.update(order=9999), "order 9999 of"),
        (2, lambda record: record.update(order=-1), "order -1 of"),
        (2, lambda record: record["times_us"].pop(), "measurements of"),
        (2, lambda record: record["times_us"][0].pop(), "times_us.0: damaged"),
        (2, lambda record: record["times_us"][0].__setitem__(0, float("nan")), "times_us.0.0: "),
        (2, lambda record: record["times_us"][0].__setitem__(0, -1), r"times .*=-1\.0"),
        (2, lambda record: record["canary_us"].pop(), "canary_us: damaged"),
        (2, lambda record: record["canary_us"].__setitem__(0, 0), "a probe that takes 0 and"),
        (2, lambda record: record["launches"][1][0].pop("choice"), "choice"),
    ],
)  # fmt: skip
def test_damaged_results_are_named(
    phone: MadeUpPhone, tmp_path: Path, line: int, change: Any, message: str
) -> None:
    phone.measure(maximum=2)
    records = [json.loads(text) for text in phone.results.read_text().splitlines()]
    change(records[line - 1])
    phone.results.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(InputError, match=message) as error:
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")
    assert f"{phone.results}:{line}" in str(error.value)


def test_results_measured_in_another_way_are_refused(phone: MadeUpPhone, tmp_path: Path) -> None:
    phone.measure(maximum=2)
    records = [json.loads(text) for text in phone.results.read_text().splitlines()]
    records[1]["way"] = ["copy", "events"]
    phone.results.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(InputError, match="measured in another way"):
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\n", b"[]\n", b"{\n"])
def test_other_files_are_no_results(phone: MadeUpPhone, tmp_path: Path, content: bytes) -> None:
    phone.results.write_bytes(content)
    with pytest.raises(InputError, match=r"no results|not a"):
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")


@pytest.mark.parametrize("name", [ORDERS_FILE, PLAN_FILE])
def test_a_damaged_folder_is_refused(phone: MadeUpPhone, tmp_path: Path, name: str) -> None:
    phone.measure()
    changed = (phone.folder / name).read_text().replace("8", "9")
    (phone.folder / name).write_text(changed)
    with pytest.raises(InputError, match="not those of the plan"):
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")
    (phone.folder / PLAN_FILE).write_text('{"layers": "8"}')
    with pytest.raises(InputError, match="not a"):
        collect_results(phone.folder, phone.results, tmp_path / "samples.jsonl")


def test_the_commands_write_orders_and_read_results(cli: Cli, tmp_path: Path) -> None:
    folder, samples = tmp_path / "orders", tmp_path / "samples.jsonl"
    short = ["--samples", 3, "--turns", 1, "--rounds", 1, "--cuts", 1]
    done = cli("collect", "--orders", folder, *short)
    assert "10 files" in done.out, done.err
    MadeUpPhone(folder).measure(maximum=handovers(replace(PLAN, threads=(1,))) + 2)
    back = ["collect", "--orders", folder, "--results", folder / RESULTS_FILE, "-o", samples]
    done = cli(*back)
    assert "2 layers measured, 0 known before" in done.out, done.err
    assert "orders without a result yet: 1" in done.out
    assert "already" in cli.refused(*back)
    assert "0 layers measured, 2 known before" in cli(*back, "--resume").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "what to do is not clear"),
        (["--orders", "o", "-o", "s.jsonl"], "what to do is not clear"),
        (["--results", "r.jsonl", "-o", "s.jsonl"], "what to do is not clear"),
        (["--orders", "o", "--device", "gpu:1+cpu"], "--device has no effect"),
        (["--orders", "o", "--results", "r", "-o", "s", "--seed", "3"], "--seed has no effect"),
    ],
)
def test_options_without_effect_are_refused(cli: Cli, options: list[str], message: str) -> None:
    assert message in cli.refused("collect", *options)
