"""The command line: what every command prints, for people and as JSON."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from phonebit import Network
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.format.reader import read_contents
from support.cli_process import Cli

COMMANDS = (
    "convert", "inspect", "run", "verify", "bench", "devices", "selftest", "tune", "models", "demo",
    "kernels", "doctor", "eval", "completion", "profile", "compare", "batch",
    "estimate", "export", "web",
)  # fmt: skip


def test_no_command_shows_help(cli: Cli) -> None:
    text = cli().out
    for name in COMMANDS:
        assert name in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(cli: Cli, name: str) -> None:
    done = cli(name, "--help")
    assert done.code == 0
    assert "Usage: phonebit" in done.out
    assert "--debug" not in done.out
    assert not re.search(r"<\w|\{|int range|float range", done.out)


@pytest.mark.parametrize(
    ("shell", "variables"),
    [
        ("bash", {"COMP_WORDS": "phonebit eval --so", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "phonebit eval --so"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "phonebit eval --so",
                  "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)  # fmt: skip
def test_shells_complete(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, shell: str, variables: dict[str, str]
) -> None:
    script = cli("completion", shell).out
    assert f"_PHONEBIT_COMPLETE=complete_{shell}" in script
    for name, value in {**variables, "_PHONEBIT_COMPLETE": f"complete_{shell}"}.items():
        monkeypatch.setenv(name, value)
    assert "--source" in cli().out


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("phonebit ")


def test_convert_writes_a_file_and_reports(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pbit"
    done = cli(
        "convert", checkpoint, "-o", target, "--input", "u8", "--input-range=-1,1", "--strict"
    )
    assert done.code == 0, done.err
    assert target.read_bytes()[:4] == b"PBIT"
    assert "out.pbit" in done.out
    assert "binary" in done.out


def test_convert_stores_real_weights_as_halves(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    sizes = {}
    for kind in ("f32", "f16"):
        target = tmp_path / f"{kind}.pbit"
        done = cli("convert", checkpoint, "-o", target, "--float-weights", kind, "--json")
        assert done.code == 0, done.err
        sizes[kind] = target.stat().st_size
    assert sizes["f16"] < sizes["f32"]
    assert any("stored as float16" in note for note in done.document["notes"])
    shown = cli("inspect", target, "--json").document["layers"]
    reported = {layer["name"]: layer["bytes_after"] for layer in done.document["layers"]}
    assert {layer["name"]: layer["weight_bytes"] for layer in shown} == reported
    refused = cli("convert", checkpoint, "--float-weights", "f8")
    assert refused.code == 2
    assert "'f8' is not one of 'f32', 'f16'" in refused.err


def test_convert_json_is_the_report(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps([f"c{i}" for i in range(10)]))
    target = tmp_path / "out.pbit"
    done = cli("convert", checkpoint, "-o", target, "--labels", labels, "--no-check", "--json")
    assert done.code == 0, done.err
    assert 0.9 < done.document["binary_mac_share"] <= 1.0
    assert read_graph(target).labels == [f"c{i}" for i in range(10)]


def test_convert_writes_next_to_its_source_by_default(
    cli: Cli, checkpoint: Path, tmp_path: Path
) -> None:
    source = shutil.copy(checkpoint, tmp_path / "net.h5")
    assert cli("convert", source, "--no-check").code == 0
    assert (tmp_path / "net.pbit").is_file()


def test_inspect_shows_every_layer(cli: Cli, u8_file: Path) -> None:
    done = cli("inspect", u8_file)
    assert done.code == 0
    document = cli("inspect", u8_file, "--json").document
    shape = [28, 28, 1]
    assert document["inputs"] == [
        {"name": "picture", "dtype": "u8", "shape": shape, "array_shape": shape}
    ]
    assert document["memory"]["file_bytes"] == u8_file.stat().st_size
    for layer in document["layers"]:
        assert layer["name"] in done.out
        assert layer["output_types"]
        assert layer["sources"]
    assert sum(layer["macs"] for layer in document["layers"]) == document["macs"]


def test_run_classifies_images(cli: Cli, u8_file: Path, images: list[Path]) -> None:
    done = cli("run", u8_file, *images[:3], "--top", 3, "--json", "--threads", 1)
    assert done.code == 0, done.err
    results = done.document["results"]
    assert [result["image"] for result in results] == [str(path) for path in images[:3]]
    for result in results:
        probabilities = [guess["probability"] for guess in result["top"]]
        assert len(probabilities) == 3
        assert probabilities == sorted(probabilities, reverse=True)
        assert result["latency_ms"] > 0
        assert result["changes"] == []
    right = [r["top"][0]["label"] in r["image"] for r in results]
    assert sum(right) >= 2


def test_run_takes_folders_patterns_and_standard_input(
    cli: Cli, u8_file: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = images[0].parent
    odd = tmp_path / "[0].png"  # a name, though it could be a pattern
    odd.write_bytes(images[0].read_bytes())
    named = [folder, folder / "*boot.png", odd, "-"]
    boots = [path for path in images if path.stem.endswith("boot")]
    image = SimpleNamespace(buffer=io.BytesIO(images[0].read_bytes()))
    monkeypatch.setattr("sys.stdin", image)
    results = cli("run", u8_file, *named, "--json").document["results"]
    found = [result["image"] for result in results]
    assert found == [*map(str, [*images, *boots, odd]), "-"]
    assert results[-1]["top"] == results[-2]["top"] == results[0]["top"]
    assert "no file matches this pattern" in cli.refused("run", u8_file, folder / "*.jpg")
    (tmp_path / "empty").mkdir()
    assert "no images in this folder" in cli.refused("run", u8_file, tmp_path / "empty")


def test_run_prints_classes_for_people(cli: Cli, u8_file: Path, images: list[Path]) -> None:
    done = cli("run", u8_file, images[0], "--device", "cpu:scalar")
    assert done.code == 0
    assert images[0].name in done.out.replace("\n", "")
    assert "%" in done.out
    assert "cpu:scalar" in done.out


def test_run_resizes_and_greys_and_says_so(
    cli: Cli, u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    with Image.open(images[0]) as image:
        image.convert("RGB").resize((56, 56), Image.Resampling.NEAREST).save(tmp_path / "big.png")
    same = cli("run", u8_file, images[0], "--json").document["results"][0]
    result = cli("run", u8_file, tmp_path / "big.png", "--json").document["results"][0]
    assert result["changes"] == ["converted from RGB to L", "resized from 56x56 to 28x28"]
    assert result["top"][0]["label"] == same["top"][0]["label"]
    assert "resized from 56x56" in cli("run", u8_file, tmp_path / "big.png").out


def test_run_needs_a_range_for_real_valued_inputs(
    cli: Cli, f32_file: Path, u8_file: Path, images: list[Path]
) -> None:
    assert "--input-range" in cli.refused("run", f32_file, images[0])
    done = cli("run", f32_file, images[0], "--input-range=-1,1", "--json")
    expected = cli("run", u8_file, images[0], "--json").document["results"][0]["top"][0]
    guess = done.document["results"][0]["top"][0]
    assert guess["index"] == expected["index"]
    assert guess["probability"] == pytest.approx(expected["probability"], abs=1e-4)


def test_verify_passes_with_code_0(cli: Cli, checkpoint: Path, u8_file: Path) -> None:
    done = cli("verify", checkpoint, u8_file, "--samples", 2, "--interpreter")
    assert done.code == 0, done.out + done.err
    assert "reference interpreter" in done.out
    document = cli(
        "verify", checkpoint, u8_file, "--samples", 2, "--interpreter", "--json"
    ).document
    assert document["passed"] is True
    assert document["samples"] == 2


@pytest.mark.parametrize("command", ["run", "verify", "bench"])
@pytest.mark.parametrize("limit", ["--max-memory", "--max-work"])
def test_limits_of_a_file_are_the_callers(
    cli: Cli, checkpoint: Path, u8_file: Path, images: list[Path], command: str, limit: str
) -> None:
    files = {
        "run": [u8_file, images[0]],
        "verify": [checkpoint, u8_file, "--samples", 1, "--interpreter"],
        "bench": [u8_file, "--runs", 1],
    }
    refused = cli(command, *files[command], "--device", "cpu", limit, 100)
    assert refused.code == 2
    assert "limit of 100" in refused.err
    assert cli(command, *files[command], "--device", "cpu", limit, 10**12).code == 0


def test_verify_finds_damage_with_code_1(
    cli: Cli, checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    graph = read_graph(u8_file)
    node = next(node for node in graph.nodes if type(node.op).__name__ == "BinaryConv2D")
    weights = node.op.weights.copy()  # type: ignore[union-attr]
    weights[0] *= -1
    node.op.weights = weights  # type: ignore[union-attr]
    damaged = tmp_path / "damaged.pbit"
    damaged.write_bytes(to_bytes(graph, read_contents(u8_file).metadata))
    done = cli("verify", checkpoint, damaged, "--samples", 2, "--interpreter")
    assert done.code == 1
    assert f"first mismatch at layer '{node.name}'" in " ".join(done.out.split())


def test_verify_reads_images_and_archives(
    cli: Cli, checkpoint: Path, u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    options = ("--samples", 3, "--interpreter", "--json")
    folder = cli("verify", checkpoint, u8_file, "--inputs", images[0].parent, *options)
    assert (folder.code, folder.document["samples"]) == (0, 3)
    np.savez(tmp_path / "x.npz", anything=np.zeros((4, 28, 28, 1), np.uint8))
    archive = cli("verify", checkpoint, u8_file, "--inputs", tmp_path / "x.npz", *options)
    assert (archive.code, archive.document["samples"]) == (0, 3)


def test_bench_measures(cli: Cli, u8_file: Path) -> None:
    options = ("--runs", 12, "--warmup", 1, "--threads", 1, "--profile")
    document = cli("bench", u8_file, *options, "--json").document
    assert document["runs"] == 12
    assert document["min_ms"] <= document["median_ms"] <= document["p90_ms"]
    assert document["fps"] == pytest.approx(1e3 / document["median_ms"])
    assert sum(layer["share"] for layer in document["layers"]) == pytest.approx(1.0)
    assert document["canary"]["p90_over_min"] >= 1.0
    text = cli("bench", u8_file, *options).out
    assert "median" in text
    assert "noise probe" in text


def test_devices_name_the_isa_in_use(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    document = cli("devices", "--json").document
    supported = [isa["name"] for isa in document["isas"] if isa["supported"]]
    assert "scalar" in supported
    assert document["serving"] in supported
    monkeypatch.setenv("PHONEBIT_CPU", "scalar")
    forced = cli("devices", "--json").document
    assert (forced["serving"], forced["forced_by_environment"]) == ("scalar", "scalar")
    assert "forced by PHONEBIT_CPU" in cli("devices").out


def test_threads_by_default_are_those_that_devices_tell(
    cli: Cli, u8_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told = cli("devices", "--json").document["default_threads"]
    assert told["threads"] == 1
    assert told["reason"] in cli("devices").out
    assert Network.load(u8_file, "cpu").threads == 1
    assert Network.load(u8_file, "cpu", threads=2).threads == 2


def test_devices_refuse_an_unknown_forced_isa(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEBIT_CPU", "sse9")
    assert "PHONEBIT_CPU" in cli.refused("devices")
