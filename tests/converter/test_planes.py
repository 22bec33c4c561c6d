"""Quantizers of several levels: as bit-planes they compute what they compute as numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graphs import Source, applied, check_origins, integers, kinds, node_of
from numpy.typing import NDArray

from phonebit.converter.convert import convert_graph
from phonebit.converter.interpreter import run
from phonebit.converter.ir import SMALLEST, Graph, Operator, Window
from phonebit.converter.ops import (
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    MaxPool2D,
    Quantize,
    Reshape,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, ScaleBias
from phonebit.converter.passes.merge_comparisons import MergeComparisons
from phonebit.converter.passes.planes import Planes
from phonebit.network import Network

SAME = Window((3, 3), pads=(1, 1, 1, 1))


def quantizer(thresholds: list[float], values: list[float]) -> Quantize:
    return Quantize(np.array(thresholds, np.float32), np.array(values, np.float32))


QUANTIZERS = {
    "torch_sign": quantizer([0, SMALLEST], [-1, 0, 1]),
    "heaviside": quantizer([SMALLEST], [0, 1]),
    "ternary": quantizer([-0.5, 1.5], [-1, 0, 1]),
    "two_bits": quantizer([0.5, 1, 2.5], [0, 0.5, 1, 1.5]),
    "falling": quantizer([-1, 1, 2], [3, 1, -1, -3]),
    "shifted": quantizer([1], [-0.25, 0.75]),
    "shifted_ternary": quantizer([0, SMALLEST], [-0.25, 0.25, 0.75]),
}


def equal_on_the_engine(graph: Graph, folder: Path, **options: str) -> Graph:
    """Converts; the file must give the source graph's own numbers, to the bit."""
    conversion = convert_graph(graph, zeros="exact", **options)  # type: ignore[arg-type]
    path = folder / "net.pbit"
    path.write_bytes(conversion.content)
    check_origins(conversion.content)
    x = integers(graph)
    expected = run(graph, x)
    network = Network.load(path, device="cpu")
    outputs = network.forward(x)
    for name, array in expected.items():
        np.testing.assert_array_equal(outputs[name].reshape(array.shape), array, err_msg=name)
    return conversion.engine


Weights = Callable[..., NDArray[np.float32]]
"""From the network under construction and a shape."""


def ternary_weights(net: Source, *shape: int) -> NDArray[np.float32]:
    return net.rng.choice(np.array([-0.5, 0, 0.5], np.float32), shape)


def two_bit_weights(net: Source, *shape: int) -> NDArray[np.float32]:
    return net.rng.choice(np.array([-1.5, -0.5, 0.5, 1.5], np.float32), shape)


def two_values(net: Source, *shape: int) -> NDArray[np.float32]:
    """AdaBin's weights: another pair of values for each filter."""
    bits = net.rng.integers(0, 2, shape)
    low = (np.arange(shape[0]) * 0.25 - 1).reshape(-1, 1, 1, 1)
    return np.where(bits, low + 1.5, low).astype(np.float32)


@pytest.mark.parametrize(
    "window", [SAME, Window((3, 3)), Window((3, 3), (2, 2), (1, 1), SAME.pads)]
)
@pytest.mark.parametrize("name", QUANTIZERS)
def test_convolutions_of_quantized_values_are_binary_and_exact(
    name: str, window: Window, tmp_path: Path
) -> None:
    net = Source((7, 6, 5))
    q = net.add("q", QUANTIZERS[name], "x")
    c = net.add("c", Conv2D(net.signs(6, 3, 3, 5), window), q)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


@pytest.mark.parametrize("pad_value", [-1.0, 0.5, 2.0])
def test_padding_with_any_number_is_exact(pad_value: float, tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS["torch_sign"], "x")
    c = net.add("c", Conv2D(net.signs(6, 3, 3, 4), SAME, pad_value=pad_value), q)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


def some_of(*values: float) -> Weights:
    """The same values in each filter, but for its own scale of 1 or 2."""

    def weights(net: Source, *shape: int) -> NDArray[np.float32]:
        scale = np.resize(np.float32([1, 2]), (shape[0], 1, 1, 1))
        return net.rng.choice(np.array(values, np.float32), shape) * scale

    return weights


WEIGHTS: dict[str, Weights] = {
    "ternary": ternary_weights,
    "four values about 0": two_bit_weights,
    "two values": two_values,
    "INT2": some_of(-1, -0.5, 0, 0.5),
    "TTQ": some_of(-0.75, 0, 1.25),
    "levels of 2 bits": some_of(0, 0.25, 0.5, 0.75),
    "four values": some_of(-1.25, -0.5, 0.25, 2),
}


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_up_to_four_values_are_binary(name: str, weights: str, tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS[name], "x")
    c = net.add("c", Conv2D(WEIGHTS[weights](net, 6, 3, 3, 4), SAME), q)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


@pytest.mark.parametrize("groups", [1, 2, 16])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_so_they_are_in_groups_and_on_binary_planes(
    weights: str, groups: int, tmp_path: Path
) -> None:
    net = Source((6, 5, 64))
    q = net.add("q", quantizer([0.5, 1, 2.5, 3, 3.5, 4, 5], [i / 2 for i in range(8)]), "x")
    c = net.add("c", Conv2D(WEIGHTS[weights](net, 64, 3, 3, 64 // groups), SAME, groups), q)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)
    assert "BitPlanes" in kinds(engine)


def test_weights_of_five_values_are_not() -> None:
    net = Source()
    q = net.add("q", QUANTIZERS["ternary"], "x")
    c = net.add("c", Conv2D(some_of(-1, -0.75, 0, 0.5, 1)(net, 6, 3, 3, 4), SAME), q)
    conversion = convert_graph(net.done(c), zeros="exact")
    assert not isinstance(node_of(conversion.engine, "c").op, BinaryConv2D)
    reasons = [layer.reason for layer in conversion.report.layers]
    assert any("more than four values" in reason for reason in reasons)


@pytest.mark.parametrize(("groups", "out"), [(2, 6), (4, 4)])
@pytest.mark.parametrize("name", ["torch_sign", "two_bits"])
def test_grouped_and_depthwise_planes_are_added_up(
    name: str, groups: int, out: int, tmp_path: Path
) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS[name], "x")
    c = net.add("c", Conv2D(net.signs(out, 3, 3, 4 // groups), SAME, groups), q)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    op = node_of(engine, "c").op
    assert isinstance(op, BinaryDepthwiseConv2D if groups == 4 else BinaryConv2D)


def test_scales_per_input_channel_move_into_the_weights(tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS["torch_sign"], "x")
    scale = np.array([0.5, 2, 1, 0.25], np.float32)
    s = net.step("s", ScaleBias(scale, np.zeros(4, np.float32)), q)
    c = net.add("c", Conv2D(net.signs(6, 3, 3, 4) / scale, SAME), s)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


def arrangements() -> dict[str, list[Operator]]:
    return {
        "pool": [MaxPool2D(Window((2, 2), (2, 2)))],
        "flatten": [Reshape((1, 1, 6 * 5 * 4))],
        "pool_flatten": [MaxPool2D(Window((2, 2), (2, 2))), Reshape((1, 1, 3 * 2 * 4))],
    }


@pytest.mark.parametrize("name", ["torch_sign", "two_bits", "falling", "shifted"])
@pytest.mark.parametrize("between", ["pool", "flatten", "pool_flatten"])
def test_what_lies_between_quantizer_and_convolution_works_on_planes(
    name: str, between: str, tmp_path: Path
) -> None:
    net = Source()
    value = net.add("q", QUANTIZERS[name], "x")
    for index, op in enumerate(arrangements()[between]):
        value = net.add(f"a{index}", op, value)
    channels = net.graph.types[value].shape[2]
    c = net.add("c", Conv2D(net.signs(5, 1, 1, channels), Window((1, 1))), value)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


def test_an_activation_of_levels_only_changes_their_values(tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS["torch_sign"], "x")
    r = net.step("r", Clamp(0, float("inf")), q)
    c = net.add("c", Conv2D(net.signs(5, 3, 3, 4), SAME), r)
    with pytest.raises(AssertionError):  # levels 0, 0, 1 are not evenly spaced: planes differ
        engine = convert_graph(net.done(c), zeros="exact").engine
        assert isinstance(node_of(engine, "c").op, BinaryConv2D)


def test_concatenated_quantized_values_stay_planes(tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS["torch_sign"], "x")
    y = net.step("y", ScaleBias(np.full(4, 2, np.float32), np.ones(4, np.float32)), "x")
    r = net.add("r", QUANTIZERS["torch_sign"], y)
    k = net.add("k", Concat(), q, r)
    c = net.add("c", Conv2D(net.signs(5, 3, 3, 8), SAME), k)
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


@pytest.mark.parametrize("name", QUANTIZERS)
def test_quantized_values_that_are_needed_as_numbers_are_there(name: str, tmp_path: Path) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS[name], "x")
    s = net.step("s", AddTensor(1), q, "x")
    equal_on_the_engine(net.done(s, q), tmp_path)


@pytest.mark.parametrize("name", QUANTIZERS)
def test_batch_norm_between_two_quantized_convolutions_becomes_thresholds(
    name: str, tmp_path: Path
) -> None:
    net = Source()
    q = net.add("q", QUANTIZERS[name], "x")
    c = net.add("c", Conv2D(net.signs(8, 3, 3, 4), SAME), q)
    n = net.add("n", net.norm(8), c)
    r = net.add("r", QUANTIZERS[name], n)
    d = net.add("d", Conv2D(net.signs(3, 3, 3, 8), SAME), r)
    engine = equal_on_the_engine(net.done(d), tmp_path)
    assert isinstance(node_of(engine, "d").op, BinaryConv2D)
    assert "BatchNorm" not in kinds(engine) and "Quantize" not in kinds(engine)


@pytest.mark.parametrize("above", [False, True], ids=["at least", "above"])
@pytest.mark.parametrize("own", [False, True], ids=["one for all", "for each channel"])
def test_a_sum_of_comparisons_is_the_quantizer_that_it_spells_out(
    own: bool, above: bool, tmp_path: Path
) -> None:
    net = Source()
    compare = quantizer([SMALLEST if above else 0], [0, 0.5])
    total = ""
    for index, threshold in enumerate([1.0, -1.0, 2.0]):
        limits = np.full(4, threshold, np.float32)
        if own:
            limits = np.array([threshold, 0, 2 * threshold, 1], np.float32)
        shift = net.step(f"d{index}", ScaleBias(np.ones(4, np.float32), -limits), "x")
        term = net.add(f"b{index}", compare, shift)
        total = net.step(f"s{index}", AddTensor(1), total, term) if total else term
    c = net.add("c", Conv2D(net.signs(6, 3, 3, 4), SAME), total)
    merged = applied(MergeComparisons(), net.done(c))
    found = node_of(merged, total)
    assert isinstance(found.op, Quantize) and found.inputs == ["x"]
    assert found.op.has_own_thresholds == own
    engine = equal_on_the_engine(net.done(c), tmp_path)
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


def test_sums_of_comparisons_of_two_tensors_stay() -> None:
    net = Source()
    first, second = (net.add(name, quantizer([1], [0, 1]), "x") for name in "ab")
    y = net.step("y", ScaleBias(np.full(4, 2, np.float32), np.zeros(4, np.float32)), "x")
    third = net.add("d", quantizer([1], [0, 1]), y)
    total = net.step("s1", AddTensor(1), net.step("s0", AddTensor(1), first, second), third)
    assert kinds(applied(MergeComparisons(), net.done(total))).count("Quantize") == 3


@pytest.mark.parametrize(("error", "is_found"), [(0.0, True), (4e-6, True), (2e-4, False)])
def test_levels_are_binary_planes_up_to_rounding(error: float, is_found: bool) -> None:
    planes = Planes(["a", "b"], np.float32([[1, 2], [2, 4]]), np.float32([0, 1]), binary=True)
    levels = planes.levels * np.float32(0.3)
    levels[1] += np.float32(error)
    found = planes.with_levels(levels)
    assert (found is not None) == is_found
    if found is not None:
        np.testing.assert_allclose(found.scales, planes.scales * 0.3, rtol=1e-6)
