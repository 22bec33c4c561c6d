"""Recognition of binary layers and of what an 8-bit input allows."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Source, applied, integers, kinds, node_of

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Window
from phonebit.converter.ops import BinaryConv2D, BinaryDepthwiseConv2D, Conv2D, Dequantize, Sign
from phonebit.converter.ops.epilogue import ScaleBias
from phonebit.converter.passes.base import PassLog, copy_graph
from phonebit.converter.passes.fold_dequantize import FoldDequantize
from phonebit.converter.passes.merge_dequantize import MergeDequantize
from phonebit.converter.passes.recognise_binary import RecogniseBinary
from phonebit.converter.passes.two_valued import split_scale
from phonebit.format.records import DataType

SAME = Window((3, 3), pads=(1, 1, 1, 1))


def test_two_valued_weights_are_split_exactly() -> None:
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], np.float32), (5, 3, 3, 33))
    alpha = np.array([1.0, 0.1, 3e-5, 0.0, 1e8], np.float32)
    found = split_scale(signs * alpha[:, None, None, None])
    assert found is not None
    np.testing.assert_array_equal(found[0], alpha)
    kept = alpha != 0
    np.testing.assert_array_equal(found[1][kept], signs[kept])
    np.testing.assert_array_equal(np.abs(found[1]), 1)


def test_rounding_noise_is_tolerated_and_training_is_not() -> None:
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], np.float32), (2, 3, 3, 8))
    noise = 1 + rng.uniform(-1e-6, 1e-6, signs.shape).astype(np.float32)
    assert split_scale(signs * noise) is not None
    noise[0, 0, 0, 0] = 1.001
    assert split_scale(signs * noise) is None
    noise[0, 0, 0, 0] = 0  # a ternary weight
    assert split_scale(signs * noise) is None


@pytest.mark.parametrize("pad_value", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_bits_become_binary(pad_value: float, groups: int) -> None:
    net = Source()
    s = net.add("s", Sign(), "x")
    c = net.add("c", Conv2D(net.signs(6, 3, 3, 4 // groups), SAME, groups, pad_value), s)
    graph = applied(RecogniseBinary(), net.done(c))
    op = node_of(graph, "c").op
    assert isinstance(op, BinaryConv2D)
    assert op.groups == groups and op.pad_value == pad_value
    assert kinds(graph) == ["Sign", "BinaryConv2D"]


def test_a_scale_per_filter_becomes_a_step() -> None:
    net = Source()
    s = net.add("s", Sign(), "x")
    alpha = np.array([0.25, 1.0, 0.5], np.float32).reshape(3, 1, 1, 1)
    c = net.add("c", Conv2D(net.signs(3, 3, 3, 4) * alpha, SAME), s)
    graph = applied(RecogniseBinary(), net.done(c))
    assert kinds(graph) == ["Sign", "BinaryConv2D", "Elementwise"]
    assert node_of(graph, "c").value == "c/sum" and graph.nodes[-1].value == "c"


def test_one_filter_a_channel_becomes_depthwise_and_two_become_groups() -> None:
    net = Source()
    s = net.add("s", Sign(), "x")
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 1), SAME, 4), s)
    d = net.add("d", Conv2D(net.signs(8, 3, 3, 1), SAME, 4), s)
    graph = applied(RecogniseBinary(), net.done(c, d))
    assert isinstance(node_of(graph, "c").op, BinaryDepthwiseConv2D)
    assert isinstance(node_of(graph, "d").op, BinaryConv2D)


def test_what_stays_float_is_noted_with_its_reason() -> None:
    net = Source()
    s = net.add("s", Sign(), "x")
    weights = net.rng.integers(-3, 4, (3, 3, 3, 4)).astype(np.float32)
    values = [
        net.add("float_weights", Conv2D(weights, SAME), s),
        net.add("float_input", Conv2D(net.signs(3, 3, 3, 4), SAME), "x"),
        net.add("float_both", Conv2D(weights, SAME), "x"),
        net.add("wide", Conv2D(net.signs(3, 1, 1, 4), Window((1, 1), pads=(1, 1, 1, 1))), s),
    ]
    log = PassLog()
    graph = applied(RecogniseBinary(), net.done(*values), log)
    assert kinds(graph) == ["Sign"] + ["Conv2D"] * 4
    assert set(log.not_binary) == set(values)
    assert "real-valued input" in log.not_binary["float_input"]
    assert "wide" in log.not_binary["wide"]


def test_scaled_binary_weights_on_floats_are_stored_as_bits() -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(3, 3, 3, 4) * np.float32(0.5), SAME), "x")
    graph = applied(RecogniseBinary(), net.done(c))
    op = node_of(graph, "c").op
    assert isinstance(op, Conv2D)
    np.testing.assert_array_equal(np.abs(op.weights), 1)


# --- bytes ---------------------------------------------------------------------------------------


def byte_net(
    rational: tuple[int, int, int] | None, pad_value: float = 0.0, alpha: float = 1.0
) -> Source:
    net = Source((6, 5, 3), DataType.U8)
    mul, add, divisor = rational or (1, -128, 64)
    scale, offset = np.full(3, mul / divisor, np.float32), np.full(3, add / divisor, np.float32)
    net.add("real", Dequantize(scale, offset, rational), "x")
    weights = net.signs(33, 3, 3, 3) * np.float32(alpha)
    net.add("c", Conv2D(weights, SAME, pad_value=pad_value), "real")
    return net


@pytest.mark.parametrize("rational", [(1, -128, 64), (1, 0, 1), (2, -256, 128), (-1, 255, 1)])
def test_binary_weights_on_bytes_become_integer_sums_with_exact_padding(
    rational: tuple[int, int, int],
) -> None:
    graph = applied(FoldDequantize(), byte_net(rational, alpha=0.5).done("c"))
    op = node_of(graph, "c").op
    assert isinstance(op, Conv2D)
    assert (op.input_mul, op.input_add) == rational[:2]
    assert node_of(graph, "c").inputs == ["x"]


def test_the_range_minus_one_to_one_is_folded_within_rounding() -> None:
    net = byte_net((2, -255, 255))
    graph = copy_graph(net.done("c"))
    FoldDequantize().run(graph, PassLog())
    assert kinds(graph) == ["Dequantize", "Conv2D", "Elementwise"]
    x = integers(graph)
    # The float chain rounds 27 products of magnitude 1; the integers do not round at all.
    np.testing.assert_allclose(run(net.graph, x)["c"], run(graph, x)["c"], atol=1e-5)


@pytest.mark.parametrize("rational, pad_value", [(None, 0.0), ((1, -128, 64), 1.0)])
def test_bytes_are_not_folded_without_a_fraction_or_with_real_padding(
    rational: tuple[int, int, int] | None, pad_value: float
) -> None:
    graph = applied(FoldDequantize(), byte_net(rational, pad_value).done("c"))
    assert node_of(graph, "c").inputs == ["real"]


def test_a_rescaling_layer_joins_the_dequantization() -> None:
    net = Source((6, 5, 3), DataType.U8)
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    net.add("real", Dequantize(one, zero, (1, 0, 1)), "x")
    net.step("rescale", ScaleBias(one / np.float32(127.5), zero - 1), "real")
    net.add("c", Conv2D(net.signs(8, 3, 3, 3), SAME), "rescale")
    graph = applied(MergeDequantize(), net.done("c"))
    assert kinds(graph) == ["Dequantize", "Conv2D"]
    op = graph.nodes[1].op
    assert isinstance(op, Dequantize) and op.rational == (2, -255, 255)


def test_a_rescaling_by_no_simple_fraction_keeps_its_numbers() -> None:
    net = Source((6, 5, 3), DataType.U8)
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    net.add("real", Dequantize(one, zero, (1, 0, 1)), "x")
    net.step("rescale", ScaleBias(one * np.float32(0.0171247538), zero), "real")
    graph = applied(MergeDequantize(), net.done("rescale"))
    op = graph.nodes[1].op
    assert isinstance(op, Dequantize) and op.rational is None
