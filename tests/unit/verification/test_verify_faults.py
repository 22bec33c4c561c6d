"""Faults, one at a time in the file of a converted ONNX model: ``verify`` calls none of them fine.

The model's BatchNorm is as far off the data as one that was not fitted, so that most signs of its
first layer are constant and inputs alone show little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import phonebit
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D
from phonebit.converter.ops.epilogue import Clamp, Count, ScaleBias
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.format.reader import read_contents
from phonebit.verification import VerificationReport, verify
from phonebit.verification.constants import ConstantsCheck
from phonebit.verification.default_inputs import default_inputs
from support.onnx_models import model

Fault = Callable[[Any], Any]
"""An operator to the operator that is wrong."""


@cache
def network() -> onnx.ModelProto:
    """A float layer, a binary one with a shortcut, another, and a float one with limited values."""
    rng = np.random.default_rng(5)

    def norm(name: str, operand: str, center: float, scale: float) -> onnx.NodeProto:
        gamma, beta = rng.uniform(0.5, 1.5, 16), rng.normal(0, 0.3, 16)
        arrays = (gamma * rng.choice([-1, 1], 16), beta, np.full(16, center), np.full(16, scale))
        names = [f"{name}_{index}" for index in range(4)]
        constants.update(zip(names, (x.astype(np.float32) for x in arrays), strict=True))
        return helper.make_node("BatchNormalization", [operand, *names], [name], name=name)

    def weights(*shape: int) -> NDArray[np.float32]:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    constants: dict[str, NDArray[Any]] = {"w": weights(16, 3, 3, 3), "v": weights(16, 16, 1, 1)}
    for name in ("b", "c"):
        signs = rng.choice(np.array([-1, 1], np.float32), (16, 16, 3, 3))
        constants[name] = signs * rng.uniform(0.05, 0.2, (16, 1, 1, 1)).astype(np.float32)
    constants["u"] = weights(16, 3, 1, 1)
    constants["dense"] = weights(10, 16)
    constants["zero"], constants["six"] = np.float32(0), np.float32(6)
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["first"], name="first", **same),
        helper.make_node("Conv", ["x", "u"], ["side"], name="side"),
        norm("far", "first", 3.0, 1.0),
        helper.make_node("Sign", ["far"], ["s1"], name="s1"),
        helper.make_node("Conv", ["s1", "b"], ["second"], name="second", **same),
        norm("norm2", "second", 0.0, 1.0),
        helper.make_node("Add", ["norm2", "side"], ["sum"], name="sum"),
        helper.make_node("Sign", ["sum"], ["s2"], name="s2"),
        helper.make_node("Conv", ["s2", "c"], ["third"], name="third", **same),
        norm("norm3", "third", 0.0, 1.0),
        helper.make_node("Sign", ["norm3"], ["s3"], name="s3"),
        helper.make_node("Conv", ["s3", "v"], ["limited"], name="limited"),
        helper.make_node("Clip", ["limited", "zero", "six"], ["relu6"], name="relu6"),
        helper.make_node("GlobalAveragePool", ["relu6"], ["pool"], name="pool"),
        helper.make_node("Flatten", ["pool"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "dense"], ["y"], name="y", transB=1),
    ]
    return model(nodes, {"x": (1, 3, 12, 12)}, constants=constants)


@pytest.fixture(scope="module", params=["f32", "i8"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("faults") / "network.pbit"
    phonebit.convert(network(), path, zeros="plus", float_weights=request.param)
    return path


def checked(content: bytes, folder: Path) -> VerificationReport:
    path = folder / "network.pbit"
    path.write_bytes(content)
    return verify(network(), path, device="cpu")


def written(graph: Graph, original: Path) -> bytes:
    return to_bytes(graph, read_contents(original).metadata)


def test_the_network_itself_passes(file: Path, tmp_path: Path) -> None:
    report = checked(file.read_bytes(), tmp_path)
    assert report.passed, report.to_dict()
    assert report.constants.compared == len(report.layers)


def weight(change: Callable[[float], float], rank: float = 1.0) -> Fault:
    """One weight changed, by its rank among the magnitudes."""

    def fault(op: Conv2D) -> Conv2D:
        weights = op.weights.copy()
        order = np.argsort(np.abs(weights), axis=None)
        place = order[int(rank * (order.size - 1))]
        changed = change(float(weights.flat[place]))
        if np.all(weights == np.rint(weights)):  # i8
            whole = np.rint(changed)
            changed = whole if whole != weights.flat[place] else whole - np.sign(whole or 1)
        weights.flat[place] = changed
        return replace(op, weights=weights)

    return fault


def threshold(share: float, channel: int = 2) -> Fault:
    """One moved by a share of the largest, or of integers by one."""

    def fault(op: Any) -> Any:
        moved = op.epilogue.threshold.copy()
        step = share * np.abs(moved[np.isfinite(moved)]).max()
        moved[channel] += max(1, int(step)) if moved.dtype == np.int32 else step or share
        return replace(op, epilogue=replace(op.epilogue, threshold=moved))

    return fault


def step_of(kind: type[Any], change: Callable[[Any], Any]) -> Fault:
    """The first epilogue operation of a kind is another."""

    def fault(op: Any) -> Any:
        steps = list(op.epilogue.steps)
        index = next(i for i, step in enumerate(steps) if isinstance(step, kind))
        steps[index] = change(steps[index])
        return replace(op, epilogue=replace(op.epilogue, steps=steps))

    return fault


def larger_scale(step: ScaleBias) -> ScaleBias:
    scale = step.scale.copy()
    scale[3] *= np.float32(1.05)
    return replace(step, scale=scale)


def swapped_scales(step: ScaleBias) -> ScaleBias:
    scale = step.scale.copy()
    scale[[3, 4]] = scale[[4, 3]]
    return replace(step, scale=scale)


FAULTS: dict[str, tuple[str, Fault]] = {
    "weight +1 %": ("first", weight(lambda w: 1.01 * w, 0.8)),
    "weight +30 %": ("first", weight(lambda w: 1.3 * w, 0.5)),
    "weight 0": ("first", weight(lambda w: 0.0, 0.5)),
    "largest weight negated": ("first", weight(lambda w: -w)),
    "smallest weight +50 %": ("first", weight(lambda w: 1.5 * w, 0.0)),
    "weight of the last layer": ("limited", weight(lambda w: 1.01 * w, 0.2)),
    "float threshold": ("s1", threshold(1e-3)),
    "float threshold of 0": ("s2", threshold(1e-3)),
    "integer threshold": ("s3", threshold(0.0)),
    "scale +5 %": ("s2", step_of(ScaleBias, larger_scale)),
    "scales swapped": ("s2", step_of(ScaleBias, swapped_scales)),
    "limit +2 %": ("relu6", step_of(Clamp, lambda clamp: replace(clamp, high=1.02 * clamp.high))),
    "limit -2 %": ("relu6", step_of(Clamp, lambda clamp: replace(clamp, high=0.98 * clamp.high))),
    "lower limit": ("relu6", step_of(Clamp, lambda clamp: replace(clamp, low=-0.1))),
    "a change below 1e-5 of the largest value": ("y", weight(lambda w: 1.0001 * w, 0.0)),
}


def node_of(graph: Graph, name: str) -> Node:
    """The layer of a name, or that defines the tensor of this name, or its only plane."""
    for wanted in (name, f"{name}/bits"):
        for node in graph.nodes:
            if wanted in (node.name, *node.outputs):
                return node
    raise AssertionError(f"{name}: {[(node.name, node.outputs) for node in graph.nodes]}")


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found_at_its_layer(name: str, file: Path, tmp_path: Path) -> None:
    layer, fault = FAULTS[name]
    found, node = with_fault(file, layer, fault, tmp_path)
    assert found.first_mismatch is not None
    assert found.first_mismatch.name == node.name, found.first_mismatch.explanation
    assert found.first_mismatch.constants


ONLY_CONSTANTS_SHOW = {
    "smallest weight +50 %",
    "a change below 1e-5 of the largest value",
}


@pytest.mark.parametrize("name", sorted(set(FAULTS) - ONLY_CONSTANTS_SHOW))
def test_a_fault_of_the_converter_is_found_too(
    name: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants cannot show it, since the converter would make the same ones again."""
    module = sys.modules["phonebit.verification.verify"]
    monkeypatch.setattr(module, "check_constants", lambda *_: ConstantsCheck())
    layer, fault = FAULTS[name]
    found, node = with_fault(file, layer, fault, tmp_path)
    assert found.first_mismatch is not None
    assert found.first_mismatch.name == node.name, found.first_mismatch.explanation
    assert not found.first_mismatch.constants


def with_fault(
    file: Path, layer: str, fault: Fault, folder: Path
) -> tuple[VerificationReport, Node]:
    graph = read_graph(file)
    node = node_of(graph, layer)
    node.op = fault(node.op)
    content = written(graph, file)
    assert content != file.read_bytes()
    return checked(content, folder), node


def test_a_threshold_that_never_fires_is_found_where_no_input_fires(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first layer's signs are constant on all inputs; the other side is asked all the same."""
    module = sys.modules["phonebit.verification.verify"]
    monkeypatch.setattr(module, "check_constants", lambda *_: ConstantsCheck())

    def fault(op: Any) -> Any:
        never = np.full_like(op.epilogue.threshold, np.inf)
        bits = np.where(constant > 0, -never, never)
        return replace(op, epilogue=replace(op.epilogue, threshold=bits))

    network_of_file = phonebit.Network.load(file, "cpu")
    inputs = default_inputs(network_of_file)
    bits = network_of_file.activations(inputs)["s1/bits"].reshape(-1, 16).astype(np.int64)
    constant = bits.mean(axis=0)
    assert np.count_nonzero(np.abs(constant) == 1) > 4
    found, node = with_fault(file, "s1", fault, tmp_path)
    layer = next(layer for layer in found.layers if layer.name == node.name)
    assert layer.wrong_thresholds == layer.thresholds == 16
    assert "thresholds are wrong: channel 0: at" in layer.explanation


@cache
def levels() -> onnx.ModelProto:
    """A float layer, a BatchNorm far off its data, a quantizer of two bits and a binary layer."""
    rng = np.random.default_rng(6)
    constants: dict[str, NDArray[Any]] = {
        "w": rng.normal(0, 0.3, (32, 3, 3, 3)).astype(np.float32),
        "b": rng.choice(np.array([-1, 1], np.float32), (16, 32, 3, 3)),
        "scale": np.float32(0.5), "zero": np.float32(0), "bits": np.float32(2),
    }  # fmt: skip
    norm = {"gamma": (0.5, 1.5), "beta": (-0.3, 0.3), "mean": (2, 3), "variance": (0.8, 1.2)}
    for name, (low, high) in norm.items():
        constants[name] = rng.uniform(low, high, 32).astype(np.float32)
    quantizer = {"domain": "qonnx.custom_op.general", "signed": 0, "name": "q"}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["first"], name="first"),
        helper.make_node("BatchNormalization", ["first", *norm], ["far"], name="far"),
        helper.make_node("Quant", ["far", "scale", "zero", "bits"], ["q"], **quantizer),
        helper.make_node("Conv", ["q", "b"], ["y"], name="y"),
    ]
    return model(nodes, {"x": (1, 3, 8, 8)}, constants=constants)


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("share", [0.0, 1e-3])
def test_thresholds_of_levels_are_asked_on_both_sides(
    row: int, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The BatchNorm puts nearly all values on the lowest level."""
    module = sys.modules["phonebit.verification.verify"]
    monkeypatch.setattr(module, "check_constants", lambda *_: ConstantsCheck())
    path = tmp_path / "levels.pbit"
    phonebit.convert(levels(), path)

    def moved(step: Count) -> Count:
        thresholds = step.thresholds.copy()
        thresholds[5, row] += share * np.abs(thresholds).max()
        return replace(step, thresholds=thresholds)

    graph = read_graph(path)
    node = next(n for n in graph.nodes if n.value == "q/level")
    node.op = step_of(Count, moved)(node.op)
    path.write_bytes(written(graph, path))
    report = verify(levels(), path, device="cpu")
    layer = next(layer for layer in report.layers if layer.name == node.name)
    assert layer.thresholds == 32
    assert layer.wrong_thresholds == (share > 0)
    assert report.passed == (share == 0), layer.explanation
