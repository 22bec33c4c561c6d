"""Weights stored as 8-bit integers give the very bits of the same numbers stored as float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.converter.ir import FloatArray, Graph, Window
from phonebit.converter.ops import (
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Pad,
    Reshape,
    SelectChannels,
)
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.base import copy_graph
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import ModelFormatError
from phonebit.format.records import DataType
from phonebit.format.writer import file_bytes
from support.engine_net import SAME3, Net, sign_of
from support.golden import golden_graph

ISAS = [name for name, _, supported in _runtime.isas() if supported]
FLOAT_KERNEL, INTEGER_KERNEL = "conv2d_f32_f32_w8", "conv2d_i8_f32"
SHAPES = {
    "dense, one block": (1, 300, 64, Window((1, 1)), 1),
    "dense, a few channels": (1, 257, 7, Window((1, 1)), 1),
    "dense, blocks and a rest": (3, 40, 169, Window((3, 3)), 1),
    "several tiles of pixels": (7, 70, 130, Window((1, 1)), 1),
    "a window, many pixels": (23, 5, 40, SAME3, 1),
    "a dilated window": (12, 6, 33, Window((3, 2), (2, 1), (2, 3), (1, 2, 2, 0)), 1),
    "groups": (9, 12, 36, SAME3, 3),
    "one filter a channel": (9, 37, 37, SAME3, 37),
}
Shape = tuple[int, int, int, Window, int]


def bytes_of(net: Net, *shape: int) -> FloatArray:
    """Integers from -127 to 127, the extremes among them."""
    weights = net.rng.integers(-127, 128, shape).astype(np.float32)
    weights.reshape(-1)[:2] = 127, -127
    return weights


def convolution(net: Net, shape: Shape) -> Conv2D:
    _size, cin, cout, window, groups = shape
    weights = bytes_of(net, cout, *window.kernel, cin // groups)
    scale = ScaleBias(np.full(cout, 2.0**-7, np.float32), net.dyadic(cout))
    return Conv2D(weights, window, groups, epilogue=Epilogue([scale]), stored_as=DataType.I8)


def of_values(shape: Shape) -> Graph:
    net = Net("bytes")
    x = net.input("x", (shape[0], shape[0], shape[1]))
    return net.done(net.op("conv", convolution(net, shape), x))


def of_signs(shape: Shape) -> Graph:
    """The same convolution over bits, which an op of their own turns into -1 and +1."""
    net = Net("bytes")
    x = net.input("x", (shape[0], shape[0], shape[1]))
    floats = net.op("floats", Elementwise(), sign_of(net, x))
    return net.done(net.op("conv", convolution(net, shape), floats))


def as_float32(graph: Graph) -> Graph:
    """The same numbers, stored in four bytes."""
    result = copy_graph(graph)
    for node in result.nodes:
        if isinstance(node.op, Conv2D):
            node.op = replace(node.op, stored_as=DataType.F32)
    return result


def stored(graph: Graph, path: Path) -> str:
    path.write_bytes(to_bytes(graph))
    return str(path)


def image(graph: Graph, seed: int = 7) -> np.ndarray:
    shape = (2, *graph.types["x"].shape)
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def kernel_of(network: _runtime.Network, name: str = "conv") -> str:
    return next(layer.kernel for layer in network.layers if layer.name == name)


def assert_bits_of_float32(graph: Graph, isa: str, folder: Path) -> _runtime.Network:
    integers = stored(graph, folder / "i8.pbit")
    floats = stored(as_float32(graph), folder / "f32.pbit")
    x = image(graph)
    expected = _runtime.Network(floats, 1, f"cpu:{ISAS[0]}").forward([x])
    for threads in (3, 1):
        network = _runtime.Network(integers, threads, f"cpu:{isa}")
        for got, wanted in zip(network.forward([x]), expected, strict=True):
            np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))
    return network


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_bytes_give_the_bits_of_float32(shape: Shape, isa: str, tmp_path: Path) -> None:
    network = assert_bits_of_float32(of_values(shape), isa, tmp_path)
    assert (kernel_of(network) == FLOAT_KERNEL) == (shape[4] == 1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_sums_over_bits_are_integers_and_have_the_bits_of_float32(
    shape: Shape, isa: str, tmp_path: Path
) -> None:
    network = assert_bits_of_float32(of_signs(shape), isa, tmp_path)
    assert (kernel_of(network) == INTEGER_KERNEL) == (shape[4] == 1)


@pytest.mark.parametrize("isa", ISAS)
def test_bits_that_are_rearranged_stay_integers(isa: str, tmp_path: Path) -> None:
    net = Net("rearranged")
    x = net.input("x", (6, 5, 7))
    floats = net.op("floats", Elementwise(), sign_of(net, x))
    padded = net.op("padded", Pad((1, 0, 2, 1), -3.0), floats)
    pooled = net.op("pooled", MaxPool2D(Window((2, 2))), padded)
    chosen = SelectChannels(np.array([6, -1, 0, 3, -1], np.int32))
    joined = net.op("joined", Concat(), pooled, net.op("chosen", chosen, pooled))
    height, width, channels = net.graph.types[joined].shape
    flat = net.op("flat", Reshape((1, 1, height * width * channels)), joined)
    shape = (1, height * width * channels, 33, Window((1, 1)), 1)
    graph = net.done(net.op("conv", convolution(net, shape), flat))
    assert kernel_of(assert_bits_of_float32(graph, isa, tmp_path)) == INTEGER_KERNEL


@pytest.mark.parametrize("case", ["steps", "half a level of padding", "sums beyond 2^24"])
def test_what_is_not_known_to_be_exact_stays_float32(case: str, tmp_path: Path) -> None:
    net = Net("not exact")
    cin = 2000 if case.startswith("sums") else 8
    x = net.input("x", (3, 3, cin))
    sign = sign_of(net, x)
    if case == "steps":
        value = net.op("floats", Elementwise(Epilogue([net.scale_bias(cin)])), sign)
    else:
        floats = net.op("floats", Elementwise(), sign)
        pad = 0.5 if case.startswith("half") else 127.0
        value = net.op("padded", Pad((1, 1, 1, 1), pad), floats)
    size = net.graph.types[value].shape[0]
    graph = net.done(net.op("conv", convolution(net, (size, cin, 9, Window((3, 3)), 1)), value))
    assert kernel_of(assert_bits_of_float32(graph, ISAS[0], tmp_path)) == FLOAT_KERNEL


def test_a_layer_of_bytes_takes_a_quarter_of_the_memory(tmp_path: Path) -> None:
    graph = of_values(SHAPES["dense, blocks and a rest"])
    integers = _runtime.Network(stored(graph, tmp_path / "i8.pbit"), 1)
    floats = _runtime.Network(stored(as_float32(graph), tmp_path / "f32.pbit"), 1)
    scales = 2 * 4 * 169  # bytes of the scale and bias step
    assert 4 * (integers.layers[0].weight_bytes - scales) == floats.layers[0].weight_bytes - scales
    assert 4 * integers.memory["weight_bytes"] == floats.memory["weight_bytes"]


def test_minus_128_is_refused(tmp_path: Path) -> None:
    contents = to_contents(golden_graph("byte_weights"))
    data = bytearray(contents.data)
    data[int(contents.constants[contents.ops[0]["weights"]]["offset"]) + 77] = 0x80
    contents.data = bytes(data)
    path = tmp_path / "bad.pbit"
    path.write_bytes(file_bytes(contents))
    with pytest.raises(ModelFormatError, match=r"op 0 'plain' \(conv2d\): weight 77 is -128"):
        _runtime.Network(str(path), 1)


def test_bytes_are_weights_of_real_values_only(tmp_path: Path) -> None:
    contents = to_contents(golden_graph("u8_first_layer_3_64"))
    constants = contents.constants.copy()
    weights = constants[contents.ops[0]["weights"]]
    weights["dtype"], weights["count"] = DataType.I8, 4 * weights["count"]
    contents.constants = constants
    path = tmp_path / "bad.pbit"
    path.write_bytes(file_bytes(contents))
    with pytest.raises(ModelFormatError, match="weights are 2304 x i8, expected 576 x bit"):
        _runtime.Network(str(path), 1)
