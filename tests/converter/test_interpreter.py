"""The reference interpreter against plain loops written from the mathematics."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from phonebit.converter.infer import infer
from phonebit.converter.interpreter import evaluate_node, run
from phonebit.converter.ir import Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    Dequantize,
    Elementwise,
    Input,
    MaxPool2D,
    Pad,
    Reshape,
    SelectChannels,
    Sign,
    Softmax,
)
from phonebit.converter.ops.epilogue import (
    AddTensor,
    Clamp,
    Epilogue,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import (
    Elu,
    Exp,
    Gelu,
    Log,
    Mish,
    Reciprocal,
    Round,
    Sigmoid,
    Softplus,
    Sqrt,
    Tanh,
)
from phonebit.errors import InputError
from phonebit.format.records import DataType

RNG = np.random.default_rng(7)
WINDOWS = [
    Window((1, 1)),
    Window((3, 3), pads=(1, 1, 1, 1)),
    Window((3, 2), (2, 1), (1, 2), (0, 1, 2, 0)),
    Window((2, 3), (1, 2), (2, 1), (1, 2, 0, 1)),
    Window((5, 6)),
]


def apply(op: Operator, *operands: np.ndarray) -> np.ndarray:
    node = Node("n", op, [f"i{k}" for k in range(len(operands))], value="v")
    return evaluate_node(node, list(operands))["v"]


def signs(*shape: int) -> np.ndarray:
    return RNG.choice(np.array([-1, 1], np.int8), shape)


def taps(window: Window, height: int, width: int, oy: int, ox: int):  # type: ignore[no-untyped-def]
    """(kh, kw, y, x, whether inside) of every tap of one output pixel."""
    for kh, kw in itertools.product(range(window.kernel[0]), range(window.kernel[1])):
        y = oy * window.strides[0] - window.pads[0] + kh * window.dilation[0]
        x = ox * window.strides[1] - window.pads[1] + kw * window.dilation[1]
        yield kh, kw, y, x, 0 <= y < height and 0 <= x < width


def looped_conv(
    x: np.ndarray, weights: np.ndarray, window: Window, groups: int, pad_value: float
) -> np.ndarray:
    batch, height, width, channels = x.shape
    size = window.output_size(height, width)
    per_in, per_out = channels // groups, weights.shape[0] // groups
    out = np.zeros((batch, *size, weights.shape[0]))
    for n, oy, ox, o in np.ndindex(out.shape):
        for kh, kw, y, xx, inside in taps(window, height, width, oy, ox):
            for c in range(per_in):
                value = float(x[n, y, xx, o // per_out * per_in + c]) if inside else pad_value
                out[n, oy, ox, o] += value * float(weights[o, kh, kw, c])
    return out


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pad_value", [-1, 0, 1])
def test_binary_convolution_counts_exactly(window: Window, pad_value: int) -> None:
    x, weights = signs(2, 5, 6, 6), signs(4, *window.kernel, 3)
    result = apply(BinaryConv2D(weights, window, 2, pad_value), x)
    np.testing.assert_array_equal(result, looped_conv(x, weights, window, 2, pad_value))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pad_value", [-1, 0, 1])
def test_binary_depthwise_convolution_counts_exactly(window: Window, pad_value: int) -> None:
    x, weights = signs(2, 5, 6, 3), signs(3, *window.kernel, 1)
    result = apply(BinaryDepthwiseConv2D(weights, window, pad_value), x)
    np.testing.assert_array_equal(result, looped_conv(x, weights, window, 3, pad_value))


@pytest.mark.parametrize("groups, channels, cout", [(1, 4, 3), (2, 4, 6), (4, 4, 4), (4, 4, 8)])
def test_float_convolution_with_groups_bias_and_padding_value(
    groups: int, channels: int, cout: int
) -> None:
    window = WINDOWS[2]
    x = RNG.standard_normal((2, 5, 6, channels)).astype(np.float32)
    weights = RNG.standard_normal((cout, *window.kernel, channels // groups)).astype(np.float32)
    bias = RNG.standard_normal(cout).astype(np.float32)
    result = apply(Conv2D(weights, window, groups, 0.5, bias), x)
    expected = looped_conv(x, weights, window, groups, 0.5) + bias
    # Sums of 24 products of magnitude about 1: float32 rounds them to about 1e-6.
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_convolution_of_bytes_is_exact_and_pads_with_the_integer_zero() -> None:
    x = RNG.integers(0, 256, (1, 5, 6, 3)).astype(np.uint8)
    weights, window = signs(2, 3, 3, 3), WINDOWS[1]
    op = Conv2D(weights.astype(np.float32), window, input_mul=2, input_add=-255)
    shifted = 2 * x.astype(np.int64) - 255
    np.testing.assert_array_equal(apply(op, x), looped_conv(shifted, weights, window, 1, 0))


def test_sums_beyond_float32_integers_stay_exact() -> None:
    x = np.full((1, 1, 1, 70_000), 255, np.uint8)
    weights = np.ones((1, 1, 1, 70_000), np.float32)
    weights[0, 0, 0, 0] = -1
    node = Node("n", Conv2D(weights, Window((1, 1))), ["x"], bits="b")
    exact = 255 * 69_998
    for threshold, bit in ((exact, 1), (exact + 1, -1)):
        node.op.epilogue = Epilogue([], np.array([threshold], np.int32))  # type: ignore[union-attr]
        assert evaluate_node(node, [x])["b"].item() == bit


@pytest.mark.parametrize("window", WINDOWS[:3])
def test_pooling_ignores_what_is_outside_the_map(window: Window) -> None:
    x = RNG.standard_normal((2, 5, 6, 3)).astype(np.float32)
    size = window.output_size(5, 6)
    maximum, mean = np.zeros((2, *size, 3)), np.zeros((2, *size, 3))
    for n, oy, ox, c in np.ndindex(maximum.shape):
        seen = [x[n, y, xx, c] for _, _, y, xx, inside in taps(window, 5, 6, oy, ox) if inside]
        maximum[n, oy, ox, c], mean[n, oy, ox, c] = max(seen), np.mean(seen)
    np.testing.assert_array_equal(apply(MaxPool2D(window), x), maximum)
    np.testing.assert_allclose(apply(AveragePool2D(window), x), mean, atol=1e-6)


def test_max_pooling_of_bits_takes_the_minimum_on_flipped_channels() -> None:
    x, window = signs(1, 5, 6, 2), Window((3, 3), (2, 2), pads=(1, 1, 1, 1))
    result = apply(MaxPool2D(window, np.array([False, True])), x)
    assert result.dtype == np.int8
    floats = x.astype(np.float32)
    np.testing.assert_array_equal(result[..., 0], apply(MaxPool2D(window), floats)[..., 0])
    np.testing.assert_array_equal(result[..., 1], -apply(MaxPool2D(window), -floats)[..., 1])


def test_batch_norm_rounds_after_every_operation() -> None:
    gamma, beta, mean, variance = (
        RNG.standard_normal(64).astype(np.float32) ** 2 + np.float32(0.1) for _ in range(4)
    )
    x = RNG.standard_normal((1, 1, 1, 64)).astype(np.float32)
    result = apply(BatchNorm(gamma, beta, mean, variance, 1e-3), x)
    f = np.float32
    for c in range(64):
        scale = f(gamma[c] / f(np.sqrt(f(variance[c] + f(1e-3)))))
        assert result[0, 0, 0, c] == f(f(f(x[0, 0, 0, c] - mean[c]) * scale) + beta[c])


def test_scale_and_bias_are_not_contracted() -> None:
    # 1 + 2^-12 squared needs 24 fraction bits: a fused multiply-add would keep the last one.
    x = np.full((1, 1, 1, 1), 1 + 2.0**-12, np.float32)
    step = ScaleBias(x[0, 0, 0], np.array([-1 - 2.0**-11], np.float32))
    assert apply(Elementwise(Epilogue([step])), x).item() == 0.0


def test_steps_compute_what_they_are_called() -> None:
    x = np.array([-2.0, -0.5, 0.0, 3.0], np.float32).reshape(1, 1, 2, 2)
    other = np.array([10.0, 20.0], np.float32).reshape(1, 1, 1, 2)
    cases = [
        (AddTensor(1), x + other),
        (MultiplyTensor(1), x * other),
        (Clamp(-1.0, 1.0), np.clip(x, -1, 1)),
        (PRelu(np.array([2.0, 4.0], np.float32)), np.array([-4.0, -2.0, 0.0, 3.0])),
        (PRelu(np.array([2.0, 4.0, 8.0, 16.0], np.float32)), np.array([-4.0, -2.0, 0.0, 3.0])),
        (Sigmoid(), 1 / (1 + np.exp(-x))),
        (Tanh(), np.tanh(x)),
        (Round(), np.array([-2.0, -0.0, 0.0, 3.0])),
        (Gelu(), np.array([-0.0455002639, -0.154268769, 0, 2.99595031])),
        (Gelu(approximate=True), np.array([-0.0454023059, -0.154285990, 0, 2.99636297])),
        (Exp(), np.array([0.135335283, 0.606530660, 1, 20.0855369])),
        (Log(), np.array([np.nan, np.nan, -np.inf, 1.09861229])),
        (Sqrt(), np.array([np.nan, np.nan, 0, 1.73205081])),
        (Reciprocal(), np.array([-0.5, -2, np.inf, 1 / 3])),
        (Elu(), np.array([-0.864664717, -0.393469340, 0, 3])),
        (Softplus(), np.array([0.126928011, 0.474076984, 0.693147181, 3.04858735])),
        (Mish(), np.array([-0.252501483, -0.220743775, 0, 2.98653500])),
    ]
    for step, expected in cases:
        result = apply(Elementwise(Epilogue([step])), x, other)
        assert result.dtype == np.float32
        # Transcendental functions may differ in the last bit; everything else is exact.
        np.testing.assert_allclose(result.ravel(), np.ravel(expected), rtol=1e-6)


def test_halves_are_rounded_to_even_and_keep_their_sign() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -0.49999997], np.float32).reshape(1, 1, 2, 3)
    result = apply(Elementwise(Epilogue([Round()])), x).ravel()
    np.testing.assert_array_equal(result, [0, 2, 2, 0, -2, 0])
    np.testing.assert_array_equal(np.signbit(result), np.signbit(x.ravel()))


def test_selected_channels_are_copies_in_c_order() -> None:
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    result = apply(SelectChannels(np.array([4, -1, 0, 0], np.int32)), x)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result[..., [0, 2, 3]], x[..., [4, 0, 0]])
    np.testing.assert_array_equal(result[..., 1], 0)


def test_layout_operators_keep_the_elements_in_order() -> None:
    x = RNG.standard_normal((2, 2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(apply(Reshape((1, 1, 24)), x), x.reshape(2, 1, 1, 24))
    np.testing.assert_array_equal(apply(Concat(), x, x + 1), np.concatenate([x, x + 1], axis=3))
    padded = apply(Pad((1, 2, 0, 1), 0.5), x)
    assert padded.shape == (2, 3, 6, 4)
    assert padded[0, 0, 0, 0] == padded[1, 2, 5, 3] == np.float32(0.5)
    np.testing.assert_array_equal(padded[:, 1:, 2:5], x)
    np.testing.assert_allclose(apply(Softmax(), x).sum(axis=3), 1, rtol=1e-6)


def test_bits_padded_with_zero_become_floats_and_with_one_stay_bits() -> None:
    x = signs(1, 2, 2, 3)
    assert apply(Pad((1, 1, 1, 1), -1.0), x).dtype == np.int8
    assert apply(Pad((1, 1, 1, 1), 0.0), x).dtype == np.float32


def test_the_sign_of_zero_is_plus_one_and_margins_tell_the_distance() -> None:
    x = np.array([-0.0, 0.0, 1e-30, -1e-30], np.float32).reshape(1, 1, 1, 4)
    margins: dict[str, np.ndarray] = {}
    bits = evaluate_node(Node("s", Sign(), ["x"], value="b"), [x], margins)["b"]
    assert bits.ravel().tolist() == [1, 1, 1, -1]
    np.testing.assert_array_equal(margins["b"], x)


def test_dequantize_scales_bytes() -> None:
    x = np.array([0, 128, 255], np.uint8).reshape(1, 1, 3, 1)
    op = Dequantize(np.array([0.5], np.float32), np.array([-1.0], np.float32))
    assert apply(op, x).ravel().tolist() == [-1.0, 63.0, 126.5]


def small_graph() -> Graph:
    nodes = [
        Node("x", Input(), [], value="x"),
        Node("s", Sign(), ["x"], value="s"),
        Node("c", BinaryConv2D(signs(2, 1, 1, 3), Window((1, 1))), ["s"], value="c"),
    ]
    graph = Graph("g", nodes, {"x": TensorType((2, 2, 3), DataType.F32)}, ["x"], ["c"])
    graph.types = infer(graph)
    return graph


def test_run_returns_outputs_or_whatever_is_wanted() -> None:
    graph = small_graph()
    x = RNG.standard_normal((2, 2, 2, 3)).astype(np.float32)
    assert list(run(graph, {"x": x})) == ["c"]
    assert set(run(graph, {"x": x}, graph.types)) == {"x", "s", "c"}


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros((1, 2, 2, 3)), "element type"),
        (np.zeros((2, 2, 3), np.float32), "shape"),
        (np.zeros((1, 2, 3, 3), np.float32), "shape"),
    ],
)
def test_wrong_inputs_are_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(small_graph(), {"x": array})
    with pytest.raises(InputError, match="no array"):
        run(small_graph(), {})
