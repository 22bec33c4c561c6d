"""The parts of benchmarks/networks that do not depend on how fast this machine is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.networks import document, per_layer, sizes
from benchmarks.networks.unfused import unfused_network
from benchmarks.records import read_results
from benchmarks.rounds import Rounds, take_turns
from phonebit import Network, VerificationError
from phonebit.converter.ops import BatchNorm
from phonebit.converter.reader import read_graph
from phonebit.models.networks import NETWORKS, converted
from phonebit.network.random_inputs import random_inputs


def network(content: bytes, path: Path) -> Network:
    path.write_bytes(content)
    return Network.load(path, device="cpu", threads=1)


@pytest.mark.parametrize("name", ["vgg_small", "birealnet18", "quicknet"])
def test_the_unfused_network_computes_the_same_bits(tmp_path: Path, name: str) -> None:
    fused = network(converted(name).content, tmp_path / "fused.pbit")
    unfused = network(unfused_network(name), tmp_path / "unfused.pbit")
    assert len(unfused.layers) > 1.5 * len(fused.layers)
    image = random_inputs(fused.inputs, 1)
    binary = sum(layer.binary for layer in fused.layers)
    assert per_layer.check_equal(fused, unfused, image) > binary


def test_every_layer_is_an_op_of_its_own_without_fusion(tmp_path: Path) -> None:
    unfused = network(unfused_network("vgg_small"), tmp_path / "unfused.pbit")
    names = [layer.name for layer in unfused.layers]
    source = [node.name for node in NETWORKS["vgg_small"]("outline").nodes if node.inputs]
    assert [name for name in names if name in source] == source
    assert sorted(set(names) - set(source)) == ["fc/bias", "pool3/float"]


def test_a_network_with_other_bits_is_an_error(tmp_path: Path) -> None:
    fused = network(converted("vgg_small").content, tmp_path / "fused.pbit")
    twin = network(converted("vgg_small", "float").content, tmp_path / "twin.pbit")
    with pytest.raises(VerificationError, match="expected equal elements, got"):
        per_layer.check_equal(fused, twin, random_inputs(fused.inputs, 1))


def test_the_twin_has_its_batch_normalizations_folded(tmp_path: Path) -> None:
    content = sizes.float_twin("vgg_small")
    whole = converted("vgg_small", "float").content
    norms = [node.op for node in NETWORKS["vgg_small"]("outline").nodes]
    channels = sum(op.gamma.size for op in norms if isinstance(op, BatchNorm))
    shared = 4 * (128 + 256 + 512)  # a scale of ones, kept once for each number of channels
    assert len(whole) - len(content) == pytest.approx(4 * channels - shared, abs=512)
    folded = network(content, tmp_path / "folded.pbit")
    unfolded = network(whole, tmp_path / "whole.pbit")
    image = random_inputs(folded.inputs, 1)["picture"]
    expected, got = unfolded(image), folded(image)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
    assert read_graph(tmp_path / "folded.pbit").inputs == ["picture"]


def test_ops_belong_to_the_layer_whose_number_they_have() -> None:
    ours = ["conv1", "bn1", "sign1", "pool1", "conv2", "sign8", "sign8/float", "conv9"]
    assert per_layer.layer_of(ours) == [
        "conv1", "conv1", "conv1", "conv1", "conv2", "conv8", "conv9", "conv9",
    ]  # fmt: skip
    peers = ["picture_reorder", "fused conv10", "conv3/WithoutBiases", "Reorder_1", "conv3_sign3"]
    assert per_layer.layer_of(peers) == ["other", "other", "conv3", "other", "conv3"]


def test_times_of_a_layer_s_ops_are_added() -> None:
    times = per_layer.by_layer([("conv1", 1.0), ("pool1", 0.25), ("reorder", 0.5)])
    assert times["conv1"] == 1.25
    assert times["conv2"] == 0
    assert times["other"] == 0.5


def test_disturbed_rounds_do_not_count() -> None:
    times = {"a": [{"conv1": value} for value in (1.0, 50.0, 3.0, 2.0)]}
    rounds = Rounds(times, [1.0, 1.3, 1.1, 1.0])
    assert rounds.counted == [0, 2, 3]
    assert rounds.spread("a")["conv1"]["median_ms"] == 2.0
    assert rounds.describe()["counted"] == 3


def test_all_rounds_count_where_hardly_any_is_steady() -> None:
    rounds = Rounds({"a": [{"conv1": 1.0}] * 4}, [1.0, 2.0, 2.0, 2.0])
    assert rounds.steady == [0]
    assert rounds.counted == [0, 1, 2, 3]


def test_candidates_take_turns() -> None:
    order: list[str] = []

    def candidate(name: str) -> Any:
        return lambda: order.append(name) or {"conv1": 1.0}

    rounds = take_turns({"a": candidate("a"), "b": candidate("b")}, 3)
    assert "".join(order) == "ababab"
    assert len(rounds.noise_ms) == len(rounds.times["b"]) == 3


class FakePeer:
    """Its nodes take a millisecond more in each inference."""

    passes = 0.0

    def ask(self, request: str, timeout_s: float) -> dict[str, Any]:
        assert request == "nodes"
        self.passes += 1
        return {"ms": [["conv1", self.passes], ["copy", 0.5]]}


def test_a_peer_s_times_are_medians_of_its_passes() -> None:
    times = per_layer.peer_times(FakePeer(), 3)
    assert (times["conv1"], times["other"]) == (2.0, 0.5)


def test_a_peer_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SimpleNamespace(save_onnx=lambda graph, path: path.touch())
    monkeypatch.setitem(sys.modules, "benchmarks.peers.formats.torch_format", writer)
    image = np.zeros((1, 4, 4, 3), np.float32)
    options = SimpleNamespace(device="cpu", threads=1, peer_python=str(tmp_path / "python"))
    peers, failures = per_layer._start_peers(options, tmp_path, image)
    assert peers == {}
    assert set(failures) == set(per_layer.PEER_ENGINES)
    assert "cannot be started" in failures["openvino"]


@pytest.fixture
def results() -> dict[str, Any]:
    """Made-up results: float 40 ms per layer, fused 1, unfused 2, the peer 20."""
    engines = {
        name: {
            "title": title,
            "layers": {
                layer: {"median_ms": time, "p10_ms": time, "p90_ms": time}
                for layer in document.LAYERS
            },
        }
        for name, title, time in (
            ("fused", "PhoneBit", 1.0),
            ("unfused", "PhoneBit", 2.0),
            ("float", "PhoneBit", 40.0),
            ("peer", "Toy 1", 20.0),
        )
    }
    return {
        "context": {"cpu": "a processor", "cores": 2, "date": "2026-01-01"},
        "device": "cpu",
        "threads": 1,
        "rounds": 5,
        "steady": 4,
        "counted": 4,
        "canary_limit": 1.15,
        "equal_tensors": 12,
        "engines": engines,
        "failures": {"other": "not installed"},
    }


def test_the_table_compares_with_the_fastest_float(results: dict[str, Any]) -> None:
    assert document.baseline(results) == "peer"
    assert document.binary_speed_up(results) == pytest.approx(20)
    text = document.per_layer_section(results, "cpu")
    assert "| conv3 | 1.000 | 2.000 | 40.000 | 20.000 | 2.00x | **20.0x** | 10.0x |" in text
    assert "| all | 9.00 | 18.00 | 360.00 | 180.00 | 2.00x | **20.0x** | 10.0x |" in text
    assert "20 times as fast as in Toy 1 f32" in text
    assert "not measured: other: not installed" in text


def test_a_disturbed_machine_is_said(results: dict[str, Any]) -> None:
    assert "disturbed" not in document.per_layer_section(results, "cpu")
    results |= {"steady": 1, "counted": 5}
    assert "disturbed" in document.per_layer_section(results, "cpu")


def test_the_table_of_sizes_shows_paper_and_files() -> None:
    row = {
        "paper_mb": {"float": 63.4, "binary": 2.4},
        "bytes": {"float": 63_457_780, "binary_f32": 2_497_844, "binary_f16": 2_241_844},
    }
    text = document.sizes_table({"networks": {"yolov2_tiny": row}})
    assert "| YOLOv2-Tiny | 63.4 | 63.46 | 2.4 | 2.50 | **2.24** | 28.3x |" in text


def test_committed_sizes_are_within_the_paper_s() -> None:
    document = read_results("sizes.json")
    for name, row in document["networks"].items():
        # The paper prints one decimal and cuts the rest off.
        assert row["bytes"]["float"] < (row["paper_mb"]["float"] + 0.1) * 1e6, name
        assert row["bytes"]["binary_f16"] <= row["paper_mb"]["binary"] * 1e6, name
