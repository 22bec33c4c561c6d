"""Precision "fast" on the CPU: what 8-bit integers compute, the same on every ISA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_i8_weights import INTEGER_KERNEL, ISAS, image, kernel_of, stored

from phonebit import Network, PhoneBitWarning, _runtime
from phonebit.converter.ir import FloatArray, Graph, Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.passes.base import PassLog
from phonebit.converter.passes.quantize_float_weights import QuantizeFloatWeights, quantized
from phonebit.converter.passes.round_float_weights import RoundFloatWeights
from phonebit.converter.reference.convolution import convolve
from support.engine_net import SAME3, Net

PASSES = {"i8": QuantizeFloatWeights, "f16": RoundFloatWeights}
SHAPES = {
    "stem": (24, 3, 20, Window((7, 7), (2, 2), pads=(3, 3, 2, 2))),
    "pointwise": (9, 70, 130, Window((1, 1))),
    "dense": (3, 40, 169, Window((3, 3))),
    "window": (13, 5, 33, SAME3),
}


def network(shape: tuple[int, int, int, Window], stored_as: str) -> Graph:
    size, cin, cout, window = shape
    net = Net("fast")
    x = net.input("x", (size, size, cin))
    weights = net.rng.standard_normal((cout, *window.kernel, cin)).astype(np.float32)
    graph = net.done(net.op("conv", Conv2D(weights, window), x))
    if stored_as in PASSES:
        PASSES[stored_as]().run(graph, PassLog())
    return graph


def as_defined(graph: Graph, x: FloatArray) -> NDArray[np.float32]:
    """The formulas of i8_conv.inl and i8_conv_layer.cpp for one image, in NumPy."""
    op = graph.producer("conv").op
    assert isinstance(op, Conv2D)
    f32 = np.float32
    largest = np.abs(x).max()
    q = np.rint(np.clip(x * (f32(127) / largest), -127, 127))
    weights, scale = op.weights, np.ones(len(op.weights), f32)
    if not np.array_equal(np.rint(weights), weights):
        weights, scale = quantized(weights)
    sums = convolve(q.astype(np.float64), weights.astype(np.float64), op.window, 1, 0.0)
    values = sums.astype(f32) * (scale * (largest / f32(127)))
    for step in op.epilogue.steps:
        values = values * step.scale + step.bias  # type: ignore[union-attr]
    return values


@pytest.mark.parametrize("stored_as", PASSES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_every_isa_computes_what_the_formulas_say(
    shape: tuple[int, int, int, Window], stored_as: str, tmp_path: Path
) -> None:
    graph = network(shape, stored_as)
    file = stored(graph, tmp_path / "net.pbit")
    x = image(graph)
    x[1] *= 37.0  # each image has a range of its own
    expected = np.concatenate([as_defined(graph, image[None]) for image in x])
    for isa in ISAS:
        for threads in (1, 3):
            engine = _runtime.Network(file, threads, f"cpu:{isa}", precision="fast")
            assert kernel_of(engine) == INTEGER_KERNEL
            assert engine.warnings == []
            np.testing.assert_array_equal(engine.forward([x])[0], expected)


@pytest.mark.parametrize("stored_as", PASSES)
def test_fast_is_near_to_exact(stored_as: str, tmp_path: Path) -> None:
    graph = network(SHAPES["pointwise"], stored_as)
    file = stored(graph, tmp_path / "net.pbit")
    x = image(graph)
    exact = _runtime.Network(file, 1).forward([x])[0]
    fast = _runtime.Network(file, 1, precision="fast").forward([x])[0]
    difference = float(np.abs(fast - exact).max() / np.abs(exact).max())
    assert 0 < difference < 0.03


def test_images_of_zeros_and_of_tiny_values_give_the_bias(tmp_path: Path) -> None:
    graph = network(SHAPES["window"], "i8")
    engine = _runtime.Network(stored(graph, tmp_path / "net.pbit"), 1, precision="fast")
    shape = (1, *graph.types["x"].shape)
    for value in (0.0, 1e-38, -1e-40):
        assert not engine.forward([np.full(shape, value, np.float32)])[0].any()


def test_layers_stored_as_f32_stay_exact_and_are_named(tmp_path: Path) -> None:
    graph = network(SHAPES["window"], "f32")
    file = stored(graph, tmp_path / "net.pbit")
    x = image(graph)
    with pytest.warns(PhoneBitWarning, match=r"'fast'.*weights of conv as f32.*--float-weights"):
        fast = Network.load(file, "cpu", precision="fast")
    exact = _runtime.Network(file, 1).forward([x])[0]
    np.testing.assert_array_equal(fast.forward(x), exact)


def test_groups_stay_exact_and_are_named(tmp_path: Path) -> None:
    net = Net("groups")
    x = net.input("x", (6, 6, 12))
    weights = net.rng.standard_normal((12, 3, 3, 4)).astype(np.float32)
    graph = net.done(net.op("conv", Conv2D(weights, SAME3, 3), x))
    QuantizeFloatWeights().run(graph, PassLog())
    file = stored(graph, tmp_path / "net.pbit")
    fast = _runtime.Network(file, 1, precision="fast")
    assert fast.warnings == [
        "precision 'fast': conv: groups or windows that have no 8-bit kernel stay exact"
    ]
    levels = image(graph)
    exact = _runtime.Network(file, 1).forward([levels])[0]
    np.testing.assert_array_equal(fast.forward([levels])[0], exact)
