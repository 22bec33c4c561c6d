"""Weights stored as halves give the very bits of the same numbers stored as float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.passes.base import PassLog, copy_graph
from phonebit.converter.passes.round_float_weights import RoundFloatWeights
from phonebit.converter.writer import to_bytes
from phonebit.format.records import DataType
from support.engine_net import SAME3, Net

ISAS = [name for name, _, supported in _runtime.isas() if supported]
SHAPES = {
    "dense, one block": (1, 300, 64, Window((1, 1)), 1),
    "dense, a few channels": (1, 257, 7, Window((1, 1)), 1),
    "dense, blocks and a rest": (3, 40, 169, Window((3, 3)), 1),
    "several tiles of pixels": (7, 70, 130, Window((1, 1)), 1),
    "a window, many pixels": (23, 5, 40, SAME3, 1),
    "groups": (9, 12, 36, SAME3, 3),
    "one filter a channel": (9, 37, 37, SAME3, 37),
}


def rounded(shape: tuple[int, int, int, Window, int]) -> Graph:
    """One convolution with weights of every size, subnormal halves among them."""
    size, cin, cout, window, groups = shape
    net = Net("halves")
    x = net.input("x", (size, size, cin))
    weights = net.rng.standard_normal((cout, *window.kernel, cin // groups))
    weights *= 2.0 ** net.rng.integers(-22, 3, weights.shape)
    op = Conv2D(weights.astype(np.float32), window, groups)
    graph = net.done(net.op("conv", op, x))
    RoundFloatWeights().run(graph, PassLog())
    conv = graph.producer("conv").op
    assert isinstance(conv, Conv2D)
    assert conv.stored_as == DataType.F16
    return graph


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


def image(graph: Graph) -> np.ndarray:
    shape = (2, *graph.types["x"].shape)
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_halves_give_the_bits_of_float32(
    shape: tuple[int, int, int, Window, int], isa: str, tmp_path: Path
) -> None:
    graph = rounded(shape)
    halves = stored(graph, tmp_path / "f16.pbit")
    floats = stored(as_float32(graph), tmp_path / "f32.pbit")
    x = image(graph)
    expected = _runtime.Network(floats, 1, f"cpu:{ISAS[0]}").forward([x])[0]
    for threads in (1, 3):
        np.testing.assert_array_equal(
            _runtime.Network(halves, threads, f"cpu:{isa}").forward([x])[0], expected
        )


def test_a_layer_of_halves_packs_half_the_bytes(tmp_path: Path) -> None:
    graph = rounded(SHAPES["dense, blocks and a rest"])
    halves = _runtime.Network(stored(graph, tmp_path / "f16.pbit"), 1)
    floats = _runtime.Network(stored(as_float32(graph), tmp_path / "f32.pbit"), 1)
    assert 2 * halves.layers[0].weight_bytes == floats.layers[0].weight_bytes
    assert 2 * halves.memory["weight_bytes"] == floats.memory["weight_bytes"]
