"""``phonebit android`` with the native tools of this machine on a (fake) phone of its kind."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest

from phonebit.planner.predict.samples import read_samples
from support.android_phones import PHONE_FOLDER, PROPERTIES, FakePhones
from support.cli_process import Cli

ABIS = {"x86_64": "x86_64", "aarch64": "arm64-v8a"}
TOOLS = Path(os.environ.get("PHONEBIT_TOOLS") or Path(__file__).parents[3] / "build/runtime/tools")
ORDERS = ("--samples", 3, "--turns", 1, "--rounds", 1, "--cuts", 1)


@pytest.fixture(scope="module")
def tools() -> Path:
    if not (TOOLS / "phonebit_bench").is_file():
        pytest.skip(f"no {TOOLS}/phonebit_bench: build it, or name its folder in PHONEBIT_TOOLS")
    return TOOLS


@pytest.fixture
def phones(tmp_path: Path, tools: Path) -> FakePhones:
    phones = FakePhones(tmp_path)
    abi = ABIS[platform.machine()]
    phones.attach("HOST", properties={**PROPERTIES, "ro.product.cpu.abilist": abi})
    return phones


def test_bench_measures(cli: Cli, phones: FakePhones, tools: Path, tiny_file: Path) -> None:
    flags = ("--device", "cpu", "--threads", 1, "--runs", 20, "--profile", "--adb", phones.adb)
    document = cli("android", "bench", tiny_file, *flags, "--tools", tools, "--json").document
    here = cli("bench", tiny_file, *flags[:7], "--json").document
    assert here.keys() - {"environment", "kernels"} <= document.keys()
    assert document["file"] == str(tiny_file)
    assert document["device"] == here["device"]
    assert document["median_ms"] > 0
    names = [layer["name"] for layer in document["layers"]]
    assert names == [layer["name"] for layer in here["layers"]]
    for kind in ("memory", "canary"):
        assert document[kind].keys() == here[kind].keys()
    text = cli("android", "bench", tiny_file, *flags, "--tools", tools).out
    assert f"{document['device']}, 1 thread" in text
    assert "GOPS" in text


def test_what_the_tool_refuses_is_refused_in_its_words(
    cli: Cli, phones: FakePhones, tools: Path, tiny_file: Path, tmp_path: Path
) -> None:
    flags = ("--adb", phones.adb, "--tools", tools, "--device", "cpu")
    text = cli.refused("android", "bench", tiny_file, *flags, "--cores", "little,x")
    assert "phonebit_bench failed on the phone: --cores" in text
    damaged = tmp_path / "damaged.pbit"
    damaged.write_bytes(tiny_file.read_bytes()[:1000])
    text = cli.refused("android", "bench", damaged, *flags)
    assert f"{PHONE_FOLDER}/damaged.pbit" in text


def collect(cli: Cli, phones: FakePhones, tools: Path, samples: Path, *flags: object) -> Any:
    options = ("-o", samples, "--adb", phones.adb, "--tools", tools, *flags)
    return cli("android", "collect", *ORDERS, *options)


def test_collect_makes_samples_and_goes_on_after_a_pulled_cable(
    cli: Cli, phones: FakePhones, tools: Path, tmp_path: Path, gpu: str
) -> None:
    samples = tmp_path / "phone.jsonl"
    phones.attach("HOST", loses={"shell": "--collect", "after": 3})
    interrupted = collect(cli, phones, tools, samples)
    assert interrupted.code == 2
    assert "connection to the device was lost" in interrupted.err
    assert not samples.exists()
    root = phones.attach("HOST", state="device", loses={})
    [results] = (root / PHONE_FOLDER.lstrip("/")).glob("collect-*/results.jsonl")
    kept = results.read_text().splitlines()[:3]
    done = collect(cli, phones, tools, samples)
    assert done.code == 0, done.err
    assert "3 layers measured, 0 known before" in done.out
    assert results.read_text().splitlines()[:3] == kept
    found = read_samples(samples)
    assert found.device.cpu.cores == len(os.sched_getaffinity(0))
    assert len({(sample.layer, sample.threads) for sample in found.parts}) == 3
    sent = len(phones.calls("push"))
    assert "0 layers measured, 3 known before" in collect(cli, phones, tools, samples).out
    assert len(phones.calls("push")) == sent
    assert json.loads(kept[0])["cpu"]["isa"] == found.device.cpu.isa
    other = collect(cli, phones, tools, tmp_path / "power.jsonl", "--hint", "power")
    assert "3 layers measured, 0 known before" in other.out, other.err
    assert len(results.read_text().splitlines()) == 1 + 5 + 3  # device, synchronizations, layers
