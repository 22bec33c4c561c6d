"""phonebit_bench: what it measures and lists, in the fields of ``phonebit bench --json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_program import GOLDEN, Program

from phonebit import Network
from phonebit.network.benchmark import Benchmark

CLASSIFIER = GOLDEN / "tiny_classifier.pbit"
SHORT = (CLASSIFIER, "--runs", 7, "--warmup", 1)


def test_json_has_the_fields_of_phonebit_bench(bench: Program) -> None:
    done = bench(*SHORT, "--device", "cpu", "--threads", 1, "--batch", 3, "--profile", "--json")
    assert done.code == 0, done
    found = done.document
    network = Network.load(CLASSIFIER, device="cpu", threads=1)
    assert (found["file"], found["device"]) == (str(CLASSIFIER), network.device)
    assert (found["isa"], found["threads"], found["precision"]) == (network.isa, 1, "exact")
    assert (found["batch"], found["runs"], found["warmup"]) == (3, 7, 1)
    assert found["memory"] == network.memory
    assert set(network.startup) <= set(found["startup"])
    assert found["startup"]["load_ms"] > 0 and found["startup"]["first_ms"] > 0
    assert 0 < found["min_ms"] <= found["median_ms"] <= found["p90_ms"]
    assert found["coexec"] == network.coexec == {}
    assert found["fps"] == pytest.approx(3e3 / found["median_ms"])
    assert found["canary"]["p90_over_min"] >= 1
    of_python = Benchmark(np.ones(1), np.ones(1), 1).to_dict()
    assert set(of_python) <= set(found)
    assert set(of_python["canary"]) == set(found["canary"])
    layers = found["layers"]
    assert [layer["name"] for layer in layers] == [layer.name for layer in network.layers]
    assert [layer["kernel"] for layer in layers] == [layer.kernel for layer in network.layers]
    assert [layer["macs"] for layer in layers] == [3 * layer.macs for layer in network.layers]
    assert sum(layer["share"] for layer in layers) == pytest.approx(1.0)
    assert {"before", "after"} == set(found["thermal"])
    assert {"core", "max_mhz", "capacity", "is_big", "mhz"} == set(found["cores"][0])


@pytest.mark.parametrize("device", ["gpu", "gpu+cpu"])
@pytest.mark.usefixtures("opencl")
def test_other_devices_are_measured(bench: Program, device: str) -> None:
    done = bench(*SHORT, "--device", device, "--json")
    assert done.code == 0, done
    assert done.document["device"].startswith("gpu:0 ")
    assert ("+ cpu:" in done.document["device"]) == (device == "gpu+cpu")
    assert done.document["isa"] == "opencl"
    assert done.document["coexec"].get("is_on_trial", False) is False


def test_text_is_for_people(bench: Program) -> None:
    done = bench(*SHORT, "--device", "cpu", "--profile")
    assert done.code == 0, done
    for text in ("cpu:", "batch 1, 7 runs after 1", "median", "FPS", "binary_conv2d", "conv2"):
        assert text in done.out


def test_energy_is_measured_or_the_reason_told(bench: Program) -> None:
    options = ("--energy", "--energy-seconds", 0.2, "--no-idle", "--json")
    energy = bench(*SHORT, "--device", "cpu", *options).document["energy"]
    if energy["measured"]:
        assert energy["mean_mw"] > 0 and energy["frames"] > 0
        assert energy["idle_mw"] is None
        assert energy["mj_per_frame"] == pytest.approx(energy["energy_mj"] / energy["frames"])
    else:
        assert energy["reason"] == "not measured: no source"
        assert {"rapl", "odpm", "battery", "ina"} <= set(energy["sources"])


def test_precision_and_cores_are_passed_on(bench: Program) -> None:
    options = ("--precision", "fast", "--cores", "0", "--hint", "power", "--json")
    found = bench(*SHORT, "--device", "cpu", *options).document
    assert (found["precision"], found["threads"]) == ("fast", 1)
    assert "9999" in bench.refused(*SHORT, "--device", "cpu", "--cores", "4095,9999")


def test_devices_lists_processors(bench: Program) -> None:
    from phonebit.devices.runtime import instruction_sets

    found = bench("--devices", "--json").document
    known = instruction_sets()
    assert [isa["name"] for isa in found["isas"]] == [isa.name for isa in known]
    assert [isa["supported"] for isa in found["isas"]] == [isa.supported for isa in known]
    assert found["cores"] and found["energy"]
    text = bench("--devices").out
    assert all(f"cpu:{isa.name}" in text for isa in known)


@pytest.mark.slow
@pytest.mark.usefixtures("opencl")
def test_the_self_test_tells_what_failed(bench: Program) -> None:
    done = bench("--self-test", "--device", "gpu", "--json")
    found = done.document
    assert found["tests"]
    assert found["failed"] == sum(not test["passed"] for test in found["tests"])
    assert done.code == (1 if found["failed"] else 0)
    assert {"op", "choice", "passed", "detail"} == set(found["tests"][0])
    text = bench("--self-test", "--device", "gpu")
    assert f"{len(found['tests'])} kernel variants tested" in text.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected one FILE"),
        (["no.pbit"], "no.pbit: cannot open"),
        ([CLASSIFIER, "--runs", "0"], "--runs: got '0', expected a whole number from 1 to"),
        ([CLASSIFIER, "--runs", "1e3"], "--runs: got '1e3'"),
        ([CLASSIFIER, "--batch", "99999999999"], "--batch: got '99999999999'"),
        ([CLASSIFIER, "--threads", "-1"], "--threads: got '-1'"),
        ([CLASSIFIER, "--cooldown-s", "nan"], "--cooldown-s: got 'nan', expected a number"),
        ([CLASSIFIER, "--precision", "half"], "--precision: got 'half', expected exact, f16"),
        ([CLASSIFIER, "--hint", "fast"], "--hint: got 'fast', expected none, performance or power"),
        ([CLASSIFIER, "--cores", "huge"], "--cores (big, little, any, or numbers as 0,1)"),
        ([CLASSIFIER, "--energy-seconds", "3"], "--energy-seconds has no effect"),
        ([CLASSIFIER, "--resume"], "--resume has no effect"),
        ([CLASSIFIER, "--device", "cpu", "--energy", "--energy-source", "sun"], "no source 'sun'"),
        ([CLASSIFIER, "--device", "cpu:sse"], "sse"),
        ([CLASSIFIER, "-v"], "-v: there is no such option"),
        (["--self-test", CLASSIFIER], "--self-test takes no FILE"),
        (["--devices", CLASSIFIER], "--devices takes no FILE"),
        (["--collect", "nowhere"], "nowhere/orders.txt: No such file or directory"),
        (["--collect", "o", "--threads", "2"], "--threads has no effect with --collect"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(bench: Program, options: list[Any], message: str) -> None:
    assert message in bench.refused(*options)


def test_a_damaged_file_is_refused(bench: Program, tmp_path: Path) -> None:
    content = bytearray(CLASSIFIER.read_bytes())
    content[200] ^= 255
    (tmp_path / "damaged.pbit").write_bytes(content)
    assert "damaged.pbit" in bench.refused(tmp_path / "damaged.pbit")


def test_help_names_every_mode(bench: Program) -> None:
    done = bench("--help")
    assert done.code == 0
    for option in ("--devices", "--self-test", "--collect FOLDER", "--energy", "--cores CORES"):
        assert option in done.out
