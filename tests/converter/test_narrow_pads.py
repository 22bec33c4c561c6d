"""Padding that is wider than the kernel: the convolution of bits is binary all the same."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Source, applied

from phonebit.converter.convert import convert_graph
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import BinaryConv2D, Conv2D, Pad, Sign
from phonebit.converter.passes.narrow_pads import NarrowPads

WINDOWS = [
    Window((1, 1), pads=(1, 1, 1, 1)),
    Window((1, 1), (2, 2), pads=(2, 2, 3, 0)),
    Window((1, 1), (3, 2), pads=(3, 4, 3, 5)),
    Window((3, 3), pads=(3, 3, 3, 3)),
    Window((3, 3), (2, 2), pads=(4, 3, 5, 7)),
    Window((2, 3), (2, 1), pads=(1, 1, 6, 1)),
    Window((3, 2), dilation=(2, 2), pads=(5, 3, 6, 4)),
    Window((3, 3), (2, 3), (1, 2), pads=(0, 6, 4, 0)),
]


def network(window: Window, bias: bool = False, explicit: bool = False) -> Graph:
    net = Source()
    value = net.add("s", Sign(), "x")
    if explicit:
        value = net.add("p", Pad(window.pads), value)
        window = Window(window.kernel, window.strides, window.dilation)
    op = Conv2D(net.signs(6, *window.kernel, 4), window)
    if bias:
        op.bias = np.arange(6, dtype=np.float32)
    value = net.add("c", op, value)
    return net.done(net.add("t", Sign(), value) if bias else value)


@pytest.mark.parametrize("window", WINDOWS)
def test_outputs_of_padding_alone_are_zeros_around_a_narrower_convolution(window: Window) -> None:
    graph = network(window)
    narrow = applied(NarrowPads(), graph)
    (conv,) = [node.op for node in narrow.nodes if isinstance(node.op, Conv2D)]
    assert conv.window.padding_fits
    assert sum(isinstance(node.op, Pad) for node in narrow.nodes) == 1


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
def test_such_networks_have_binary_convolutions(window: Window, bias: bool, explicit: bool) -> None:
    graph = network(window, bias, explicit)
    engine = convert_graph(graph).engine
    assert any(isinstance(node.op, BinaryConv2D) for node in engine.nodes)
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(2, *graph.types["x"].shape)).astype(np.float32)}
    (name,) = graph.outputs
    np.testing.assert_array_equal(run(engine, inputs)[name], run(graph, inputs)[name])


def test_a_window_that_would_skip_a_row_stays_as_it_is() -> None:
    graph = network(Window((1, 1), (2, 2), pads=(1, 2, 3, 0)))
    engine = convert_graph(graph).engine  # which compares the values
    assert not any(isinstance(node.op, BinaryConv2D) for node in engine.nodes)
