"""Products of two maps: the reference against NumPy, and floats with the same bits everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops import MatMul
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_devices, gpu_error, gpu_runtime
from phonebit.errors import ConversionError
from support.engine_net import Net, sign_of
from support.onnx_models import floats, halves, model

_runtime = gpu_runtime()
DEVICES = ["gpu", *(f"cpu:{name}" for name, _, supported in _runtime.isas() if supported)]
FORMS = ["plain", "transposed", "bits"]
SIZES = [(3, 7, 33, 1), (2, 8, 40, 5), (66, 65, 64, 2)]
"""Rows, columns, terms of a sum, and groups."""


def product(form: str, size: tuple[int, int, int, int]) -> Graph:
    rows, columns, depth, groups = size
    net = Net("product")
    a = net.input("a", (rows, 1, groups * depth))
    if form == "plain":
        b = net.input("b", (1, depth, groups * columns))
    else:
        b = net.input("b", (1, columns, groups * depth))
    if form == "bits":
        a, b = sign_of(net, a, "p"), sign_of(net, b, "q")
    return net.done(net.op("y", MatMul(groups, form != "plain"), a, b))


def maps(graph: Graph, batch: int = 2) -> dict[str, np.ndarray]:
    """Small integers, whose sums are exact."""
    rng = np.random.default_rng(4)
    return {
        name: rng.integers(-9, 10, (batch, *graph.types[name].shape)).astype(np.float32)
        for name in graph.inputs
    }


def on(device: str, graph: Graph, x: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    """The result of a backend."""
    if device == "gpu" and not gpu_devices():
        pytest.skip(f"no OpenCL device: {gpu_error()}")
    path = folder / "product.pbit"
    path.write_bytes(to_bytes(graph))
    (result,) = _runtime.Network(path, 2, device).forward([x["a"], x["b"]])
    return np.asarray(result)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_the_reference_has_the_exact_sums(form: str, size: tuple[int, int, int, int]) -> None:
    rows, columns, depth, groups = size
    graph = product(form, size)
    x = maps(graph)
    a, b = x["a"].reshape(2, rows, groups, depth), x["b"]
    if form == "bits":
        a, b = np.where(a >= 0, 1, -1), np.where(b >= 0, 1, -1)
    if form == "plain":
        expected = np.einsum("bmgk,bkgn->bmgn", a, b.reshape(2, depth, groups, columns))
    else:
        expected = np.einsum("bmgk,bngk->bmgn", a, b.reshape(2, columns, groups, depth))
    expected = expected.reshape(2, rows, 1, -1)
    np.testing.assert_array_equal(run(graph, x)["y"], expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("form", "columns"), [("plain", 36), ("transposed", 36), ("plain", 37)])
def test_floats_have_the_same_bits_everywhere(
    form: str, columns: int, device: str, tmp_path: Path
) -> None:
    """One chain of fused multiply-adds on every instruction set and on OpenCL."""
    graph = product(form, (13, columns, 50, 3))
    rng = np.random.default_rng(1)
    x = {
        name: rng.standard_normal((2, *graph.types[name].shape)).astype(np.float32)
        for name in graph.inputs
    }
    result = on(device, graph, x, tmp_path)
    np.testing.assert_array_equal(result, on("cpu:scalar", graph, x, tmp_path))
    np.testing.assert_allclose(result, run(graph, x)["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_it(form: str) -> None:
    graph = graph_from_bytes(to_bytes(product(form, SIZES[1])))
    assert graph.nodes[-1].op == MatMul(5, form != "plain")


def test_operands_that_do_not_fit_are_refused() -> None:
    net = Net("wrong")
    a, b = net.input("a", (3, 1, 8)), net.input("b", (1, 5, 6))
    with pytest.raises(ConversionError, match="do not fit"):
        net.op("y", MatMul(), a, b)
    net = Net("groups")
    a, b = net.input("a", (3, 1, 8)), net.input("b", (1, 5, 6))
    with pytest.raises(ConversionError, match="must divide"):
        net.op("y", MatMul(3), a, b)


@pytest.mark.parametrize(
    ("scale", "is_binary"), [(floats(0.5), True), (np.abs(halves(32)) + 0.125, False)]
)
def test_products_of_scaled_signs_are_binary_if_all_channels_have_one_scale(
    scale: np.ndarray, is_binary: bool
) -> None:
    """The check of each pass compares the values."""
    nodes = [
        helper.make_node("BipolarQuant", ["x", "half"], ["p"]),
        helper.make_node("Mul", ["p", "scale"], ["a"]),
        helper.make_node("BipolarQuant", ["z", "half"], ["q"]),
        helper.make_node("Transpose", ["q"], ["b"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "b"], ["y"], name="product"),
    ]
    constants = {"half": np.asarray(floats(0.5)[0]), "scale": scale}
    made = model(nodes, {"x": (1, 5, 32), "z": (1, 6, 32)}, constants=constants)
    report = convert_graph(import_onnx(made)).report
    (layer,) = [layer for layer in report.layers if layer.kind == "MatMul"]
    assert layer.binary == is_binary
    assert is_binary or layer.reason == "an operand is not quantized to even levels"
