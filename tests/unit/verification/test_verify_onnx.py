"""Verification of ONNX sources: their own activations, and layers that round to integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import phonebit
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.verification import verify
from support.cli_process import Cli
from support.onnx_models import halves, model

BREVITAS = "onnx.brevitas"


def network(bits: float, domain: str = BREVITAS) -> onnx.ModelProto:
    """A real-valued layer, a quantizer of as many bits, and another layer."""
    constants = {
        "w": halves(8, 3, 3, 3) / 3,
        "v": halves(4, 8, 1, 1) / 7,
        "scale": np.array(0.1, np.float32),
        "zero": np.array(0, np.float32),
        "bits": np.array(bits, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
        helper.make_node(
            "Quant", ["c", "scale", "zero", "bits"], ["q"], name="act", domain=domain, signed=1
        ),
        helper.make_node("Conv", ["q", "v"], ["y"], name="second"),
    ]
    return model(nodes, {"x": (1, 3, 6, 6)}, constants=constants)


def signs() -> onnx.ModelProto:
    """Nothing but ONNX's own operators."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
        helper.make_node("Sign", ["c"], ["s"], name="sign"),
        helper.make_node("Conv", ["s", "v"], ["y"], name="second"),
    ]
    constants = {"w": halves(8, 3, 3, 3), "v": np.sign(halves(4, 8, 1, 1) + 0.1)}
    return model(nodes, {"x": ("n", 3, 6, 6)}, constants=constants)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs.onnx").write_bytes(signs().SerializeToString())
    phonebit.convert(tmp_path / "signs.onnx", tmp_path / "signs.pbit")
    return tmp_path


def test_a_file_agrees_with_the_model_s_own_activations(cli: Cli, folder: Path) -> None:
    done = cli("verify", "signs.onnx", "signs.pbit", "--device", "cpu")
    assert done.code == 0, done.out + done.err
    assert "fed from ONNX's own activations" in done.out
    document = cli("verify", "signs.onnx", "signs.pbit", "--device", "cpu", "--json").document
    assert (document["framework"], document["reference"]) == ("ONNX", "framework")


def test_the_command_line_converts_and_names_what_a_shape_is_missing(
    cli: Cli, folder: Path
) -> None:
    assert cli("convert", "signs.onnx", "-o", "other.pbit").code == 0
    made = signs()
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "h"
    (folder / "open.onnx").write_bytes(made.SerializeToString())
    assert "--input-shape" in cli.refused("convert", "open.onnx")
    assert cli("convert", "open.onnx", "--input-shape", "1,3,6,6").code == 0
    options = ("open.onnx", "open.pbit", "--input-shape", "1,3,6,6", "--device", "cpu")
    assert cli("verify", *options).code == 0


def test_a_wrong_weight_is_found_at_its_layer(folder: Path) -> None:
    graph = read_graph(folder / "signs.pbit")
    node = next(node for node in graph.nodes if node.name == "second")
    changed: Any = node.op
    weights = changed.weights.copy()
    weights[1] *= -1
    node.op = replace(changed, weights=weights)
    (folder / "signs.pbit").write_bytes(to_bytes(graph, {}))
    report = verify(folder / "signs.onnx", folder / "signs.pbit", device="cpu")
    assert report.first_mismatch is not None and report.first_mismatch.name == "second"


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_rounding_in_a_float_network_is_judged_with_its_ties(bits: int, tmp_path: Path) -> None:
    made, file = network(bits), tmp_path / "network.pbit"
    phonebit.convert(made, file)
    report = verify(made, file, device="cpu")
    assert report.passed, report.to_dict()


def test_a_value_between_two_integers_may_be_either_but_no_other(tmp_path: Path) -> None:
    """The first layer's sums are moved by 1e-7 of them, then by a tenth of a step."""
    made, file = network(8), tmp_path / "network.pbit"
    kernels = np.zeros((8, 3, 3, 3), np.float32)
    kernels[0] = 0.05
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(kernels, "w"))
    phonebit.convert(made, file)
    images = np.zeros((1, 6, 6, 3), np.float32)
    images[:, :3, :3] = 1  # sums of up to 1.35: 13.5 steps
    graph = read_graph(file)
    first: Any = next(node.op for node in graph.nodes if node.name.startswith("first"))
    reports = []
    for factor in (1 + 2.0**-22, 1 - 2.0**-22, 1.008, 1.2):
        weights = (first.weights * np.float32(factor)).astype(np.float32)
        for node in graph.nodes:
            if node.name.startswith("first"):
                node.op = replace(first, weights=weights)
        file.write_bytes(to_bytes(graph, {}))
        reports.append(verify(made, file, images, device="cpu"))
    assert [report.passed for report in reports] == [True, True, False, False]
    assert max(report.ties for report in reports[:2]) > 0
    assert "float ties" in {reports[0].end_to_end.verdict, reports[1].end_to_end.verdict}
