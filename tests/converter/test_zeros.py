"""sign(0) = 0: impossible, exact or reported, for each sign by where its value is from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graphs import Source, integers

from phonebit.converter.convert import convert_graph
from phonebit.converter.cost import total_macs
from phonebit.converter.interpreter import run
from phonebit.converter.ir import SMALLEST, Graph, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Concat,
    Conv2D,
    Dequantize,
    MaxPool2D,
    Pad,
    Quantize,
    Reshape,
    SelectChannels,
    Sign,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, MultiplyTensor, PRelu, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round, Sigmoid, Tanh
from phonebit.converter.passes.base import PassLog, ZeroFate, copy_graph
from phonebit.converter.passes.decide_zeros import Zeros, decide_zeros
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing
from phonebit.network import Network

TORCH_SIGN = Quantize(np.array([0, SMALLEST], np.float32), np.array([-1, 0, 1], np.float32))
SAME = Window((3, 3), pads=(1, 1, 1, 1))
INFINITY = float("inf")


def fate(net: Source, value: str, zeros: Zeros = "auto") -> ZeroFate:
    """What becomes of the zeros of sign(value)."""
    net.add("sign", TORCH_SIGN, value)
    net.add(
        "last", Conv2D(net.signs(2, 1, 1, net.graph.types[value].shape[2]), Window((1, 1))), "sign"
    )
    log = PassLog()
    graph = copy_graph(net.done("last"))
    decide_zeros(graph, zeros, log)
    kept = any(isinstance(node.op, Quantize) for node in graph.nodes)
    assert kept == (log.zeros["sign"] == "exact")
    assert ("zeros='exact'" in log.notes[0]) == (log.zeros["sign"] == "counted as +")
    return log.zeros["sign"]


def shift(net: Source, by: float, value: str, channels: int = 4) -> str:
    ones = np.ones(channels, np.float32)
    return net.step(f"{value}+{by}", ScaleBias(ones, np.float32(by) * ones), value)


def real(net: Source, name: str = "real", biased: bool = True) -> str:
    """The output of a full-precision convolution; without bias it is 0 where the image is black."""
    weights = net.rng.normal(size=(4, 3, 3, 4)).astype(np.float32)
    bias = net.rng.normal(size=4).astype(np.float32) if biased else None
    return net.add(name, Conv2D(weights, SAME, bias=bias), "x")


def bits(net: Source) -> str:
    return net.add("bits", Sign(), "x")


def norm(beta: float) -> BatchNorm:
    ones = np.ones(4, np.float32)
    return BatchNorm(ones, beta * ones, 0 * ones, 0.75 * ones, 0.25)


@pytest.mark.parametrize(("taps", "expected"), [(9, "impossible"), (4, "exact")])
def test_an_odd_number_of_signs_never_sums_to_zero(taps: int, expected: ZeroFate) -> None:
    net = Source((6, 5, 1))
    side = int(taps**0.5)
    c = net.add("c", Conv2D(net.signs(4, side, side, 1), Window((side, side))), bits(net))
    assert fate(net, c) == expected


def test_zero_padding_makes_odd_sums_even() -> None:
    net = Source((6, 5, 1))
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 1), SAME), bits(net))
    assert fate(net, c) == "exact"


@pytest.mark.parametrize(("beta", "expected"), [(0.25, "impossible"), (-6.0, "exact")])
def test_every_sum_after_a_batch_norm_is_tried(beta: float, expected: ZeroFate) -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 4), SAME), bits(net))
    assert fate(net, net.add("n", norm(beta), c)) == expected


@pytest.mark.parametrize(("beta", "expected"), [(0.25, "impossible"), (-6.0, "exact")])
def test_pools_and_flattens_in_front_do_not_hide_the_sums(beta: float, expected: ZeroFate) -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 4), SAME), bits(net))
    p = net.add("p", MaxPool2D(Window((2, 2), (2, 2))), net.add("n", norm(beta), c))
    assert fate(net, net.add("f", Reshape((1, 1, 24)), p)) == expected


def test_a_padding_value_counts_too() -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 4), SAME), bits(net))
    assert fate(net, net.add("p", Pad((1, 1, 1, 1), 0.0), net.add("n", norm(0.25), c))) == "exact"


def test_real_sums_are_reported_and_kept_exact_only_on_demand() -> None:
    for zeros, expected in (("auto", "counted as +"), ("exact", "exact"), ("plus", "counted as +")):
        net = Source()
        assert fate(net, real(net), zeros) == expected  # type: ignore[arg-type]


def black(net: Source) -> str:
    return real(net, biased=False)


@pytest.mark.parametrize(
    "after",
    [
        lambda net: black(net),
        lambda net: net.add("p", MaxPool2D(Window((2, 2), (2, 2))), black(net)),
        lambda net: net.add("p", AveragePool2D(Window((2, 2), (2, 2))), black(net)),
        lambda net: net.step("leaky", PRelu(np.full(4, 0.1, np.float32)), black(net)),
        lambda net: net.step("tanh", Tanh(), black(net)),
        lambda net: net.add("n", norm(0), black(net)),
        lambda net: net.step("sum", AddTensor(1), black(net), real(net, "other", biased=False)),
    ],
)
def test_black_regions_stay_exact_through_what_is_linear_there(
    after: Callable[[Source], str],
) -> None:
    net = Source()
    assert fate(net, after(net)) == "exact"
    net = Source()
    assert fate(net, after(net), "plus") == "counted as +"


@pytest.mark.parametrize(("level", "expected"), [(0.0, "exact"), (0.25, "counted as +")])
def test_the_minimum_and_the_maximum_value_are_tried_as_the_rule_says(
    level: float, expected: ZeroFate
) -> None:
    """Levels 0 and 255 are -1 and 1, after which x + 1 and a convolution without bias stand."""
    for bound in (-1, 1):
        net = Source()
        net.graph.preprocessing = {"x": Preprocessing((-1.0, 1.0))}
        shifted = shift(net, -bound + level, "x")
        weights = net.rng.normal(size=(4, 1, 1, 4)).astype(np.float32)
        assert fate(net, net.add("c", Conv2D(weights, Window((1, 1))), shifted)) == expected


def test_bytes_are_tried_at_black_and_white() -> None:
    for offset in (0, -255):
        net = Source(dtype=DataType.U8)
        ones = np.ones(4, np.float32)
        d = net.add("d", Dequantize(ones, offset * ones), "x")
        weights = net.rng.normal(size=(4, 1, 1, 4)).astype(np.float32)
        assert fate(net, net.add("c", Conv2D(weights, Window((1, 1))), d)) == "exact"


def test_what_saturates_at_zero_is_exact() -> None:
    net = Source()
    assert fate(net, net.step("r", Clamp(0, INFINITY), real(net))) == "exact"
    net = Source()
    assert fate(net, net.step("r", PRelu(np.zeros(4, np.float32)), real(net))) == "exact"
    net = Source()
    assert fate(net, shift(net, -6, net.step("r", Clamp(0, 6), real(net)))) == "exact"


def test_what_saturates_elsewhere_is_reported() -> None:
    net = Source()
    assert fate(net, shift(net, 0.5, net.step("r", Clamp(0, 6), real(net)))) == "counted as +"
    net = Source()
    assert fate(net, net.step("h", Clamp(-1, 1), real(net))) == "counted as +"


@pytest.mark.parametrize(
    ("by", "expected"),
    [(0, "exact"), (-100, "exact"), (0.5, "counted as +"), (400, "counted as +")],
)
def test_what_is_rounded_to_zero_is_exact(by: float, expected: ZeroFate) -> None:
    net = Source()
    rounded = net.step("rounded", Round(), real(net))
    assert fate(net, shift(net, by, net.step("clamped", Clamp(-128, 127), rounded))) == expected


def test_sums_and_products_of_zeros_are_exact() -> None:
    for step, both, expected in (
        (AddTensor(1), True, "exact"),
        (AddTensor(1), False, "counted as +"),
        (MultiplyTensor(1), False, "exact"),
    ):
        net = Source()
        left = net.step("left", Clamp(0, INFINITY), real(net, "a"))
        right = real(net, "b")
        right = net.step("right", Clamp(0, INFINITY), right) if both else right
        assert fate(net, net.step("sum", step, left, right)) == expected


def test_a_hundred_shortcuts_are_walked_once() -> None:
    net = Source((4, 4, 4))
    value = black(net)
    for number in range(100):
        value = net.step(f"add{number}", AddTensor(1), value, value)
    assert fate(net, value) == "exact"


def test_the_worst_part_of_a_concatenation_decides() -> None:
    net = Source()
    a, b = real(net, "a"), net.step("b", Clamp(0, INFINITY), real(net, "c"))
    assert fate(net, net.add("k", Concat(), a, b)) == "exact"
    net = Source()
    assert fate(net, net.add("k", Concat(), real(net, "a"), real(net, "b"))) == "counted as +"


def test_channels_of_zeros_are_exact() -> None:
    net = Source()
    indices = np.array([-1, 0, 1], np.int32)
    assert fate(net, net.add("s", SelectChannels(indices), real(net))) == "exact"


def test_averages_of_relus_are_exact_and_gates_are_not() -> None:
    net = Source()
    r = net.step("r", Clamp(0, INFINITY), real(net))
    assert fate(net, net.add("p", AveragePool2D(Window((2, 2))), r)) == "exact"
    net = Source()
    assert fate(net, net.step("g", Sigmoid(), real(net))) == "counted as +"


def test_inputs_are_exact_where_a_zero_stays_zero() -> None:
    net = Source()
    assert fate(net, "x") == "exact"
    net = Source()
    assert fate(net, shift(net, 0.5, "x")) == "counted as +"


@pytest.mark.parametrize(("offset", "expected"), [(-127.5, "impossible"), (-128, "exact")])
def test_all_256_levels_of_an_image_are_tried(offset: float, expected: ZeroFate) -> None:
    net = Source(dtype=DataType.U8)
    ones = np.ones(4, np.float32)
    assert fate(net, net.add("d", Dequantize(ones, offset * ones), "x")) == expected


def two_layers(net: Source, zeros_likely: bool) -> Graph:
    c = net.add("c", Conv2D(net.signs(4, 3, 3, 4), SAME), bits(net))
    n = net.add("n", norm(0 if zeros_likely else 0.25), c)
    s = net.add("sign", TORCH_SIGN, n)
    return net.done(net.add("d", Conv2D(net.signs(3, 3, 3, 4), SAME), s))


@pytest.mark.parametrize("zeros_likely", [False, True])
def test_what_is_proven_or_exact_is_equal_end_to_end(zeros_likely: bool, tmp_path: Path) -> None:
    graph = two_layers(Source(), zeros_likely)
    path = tmp_path / "net.pbit"
    conversion = convert_graph(graph)
    path.write_bytes(conversion.content)
    x = integers(graph)
    found = Network.load(path, device="cpu").forward(x["x"])
    np.testing.assert_array_equal(found, run(graph, x)["d"])
    report = conversion.report
    assert report.macs == report.binary_macs == total_macs(graph)
    assert (report.added_macs > 0) == zeros_likely
    fused = [layer.kind for layer in report.layers]
    # One threshold for the first convolution where zeros cannot be; two comparisons where they can.
    assert (fused == ["Elementwise", "BinaryConv2D", "BinaryConv2D"]) != zeros_likely
