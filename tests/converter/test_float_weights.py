"""Float weights stored as halves: what is rounded, what is not, and what file and report say."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Source, integers

from phonebit.converter.convert import convert_graph
from phonebit.converter.cost import bytes_moved, stored_bytes
from phonebit.converter.interpreter import run
from phonebit.converter.ir import FloatArray, Graph, Window
from phonebit.converter.ops import Conv2D, Sign
from phonebit.converter.passes.base import PassLog
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.converter.passes.round_float_weights import (
    HALF_ROUNDING,
    RoundFloatWeights,
    round_to_half,
)
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import ConversionError, ModelFormatError
from phonebit.format.reader import parse_contents
from phonebit.format.records import DataType
from phonebit.format.writer import file_bytes
from support.golden import golden_graph, integer_inputs

SAME = Window((3, 3), pads=(1, 1, 1, 1))
DENSE = Window((6, 6))


def network(dense: FloatArray) -> Graph:
    """Real stem, binary convolution, real dense layer with the given weights (Cout, 6, 6, 33)."""
    net = Source((6, 6, 3))
    stem = np.random.default_rng(3).standard_normal((32, 3, 3, 3)).astype(np.float32)
    value = net.add("stem", Conv2D(stem, SAME), "x")
    value = net.add("stem_norm", net.norm(32), value)
    value = net.add("sign", Sign(), value)
    value = net.add("conv", Conv2D(net.signs(33, 3, 3, 32), SAME), value)
    value = net.add("norm", net.norm(33), value)
    return net.done(net.add("dense", Conv2D(dense, DENSE), value))


def normal(*shape: int) -> FloatArray:
    return (0.05 * np.random.default_rng(4).standard_normal(shape)).astype(np.float32)


def op_of(graph: Graph, name: str) -> Conv2D:
    op = next(node.op for node in graph.nodes if node.name == name)
    assert isinstance(op, Conv2D)
    return op


def test_real_layers_are_rounded_to_the_nearest_half_and_binary_ones_stay() -> None:
    weights = normal(10, 6, 6, 33)
    exact = convert_graph(network(weights))
    half = convert_graph(network(weights), float_weights="f16")
    for name in ("stem", "dense"):
        before, after = op_of(exact.engine, name), op_of(half.engine, name)
        assert (before.stored_as, after.stored_as) == (DataType.F32, DataType.F16)
        np.testing.assert_array_equal(
            after.weights, before.weights.astype(np.float16).astype(np.float32)
        )
    for node, other in zip(half.engine.nodes, exact.engine.nodes, strict=True):
        assert type(node.op) is type(other.op)
        if node.name not in ("stem", "dense"):
            assert stored_bytes(node) == stored_bytes(other)


def test_ties_go_to_even() -> None:
    step = 2.0**-10  # the distance of halves above 1
    weights = np.float32([[1 + step / 2, 1 + 3 * step / 2, -1 - step / 2]]).reshape(1, 1, 1, 3)
    rounded, error = round_to_half(weights)
    assert rounded.ravel().tolist() == [1.0, 1 + 2 * step, -1.0]
    assert 0.9 * HALF_ROUNDING < error <= HALF_ROUNDING


def test_the_interpreter_computes_what_the_file_says() -> None:
    half = convert_graph(network(normal(10, 6, 6, 33)), float_weights="f16")
    x = integers(half.engine)
    again = graph_from_bytes(half.content)
    assert op_of(again, "dense").stored_as == DataType.F16
    for name, array in run(half.engine, x).items():
        np.testing.assert_array_equal(run(again, x)[name], array)
    assert to_bytes(again, parse_contents(half.content).metadata) == half.content


def test_sizes_count_two_bytes_a_weight() -> None:
    weights = normal(10, 6, 6, 33)
    exact = convert_graph(network(weights))
    half = convert_graph(network(weights), float_weights="f16")
    saved = 2 * (weights.size + 32 * 27)
    assert bytes_moved(exact.engine) - bytes_moved(half.engine) == saved
    after = [sum(layer.bytes_after for layer in c.report.layers) for c in (exact, half)]
    assert after[0] - after[1] == saved
    assert saved - 256 < len(exact.content) - len(half.content) < saved + 256  # alignment
    assert exact.report.size_before_bytes == half.report.size_before_bytes


def test_the_report_says_how_many_how_large_and_how_exact() -> None:
    half = convert_graph(network(normal(10, 6, 6, 33)), float_weights="f16")
    note = next(note for note in half.report.notes if "float16" in note)
    assert note.startswith("2 layers with weights stored as float16: 25.5 kB instead of 51.0; ")
    assert "of its filter's largest (" in note
    assert float(note.split("at most ")[1].split()[0]) <= HALF_ROUNDING + 5e-6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((0, 70_000.0), "7.0e+04"),  # beyond the largest half
        ((0, 65_520.0), "6.6e+04"),  # would round to infinity
        ((slice(None), 1e-9), "1.0e-09"),  # a filter that would be all zeros
        ((slice(None), 672.5 * 2.0**-24), "4.0e-05"),  # a filter of subnormal halves
    ],
)
def test_layers_that_halves_cannot_hold_stay_exact_and_are_named(
    change: tuple[int | slice, float], words: str
) -> None:
    weights = normal(10, 6, 6, 33)
    weights[4].reshape(-1)[change[0]] = change[1]
    half = convert_graph(network(weights), float_weights="f16")
    dense = op_of(half.engine, "dense")
    assert dense.stored_as == DataType.F32
    np.testing.assert_array_equal(dense.weights, weights)
    assert op_of(half.engine, "stem").stored_as == DataType.F16
    note = next(note for note in half.report.notes if note.startswith("dense: "))
    assert "stay float32" in note
    assert words in note


def test_a_few_tiny_weights_next_to_large_ones_do_no_harm() -> None:
    weights = normal(10, 6, 6, 33)
    weights[:, 0, 0, :5] = 1e-9
    weights[7] = 0.0
    weights[0, 0, 0, 0] = 65_504.0
    half = convert_graph(network(weights), float_weights="f16")
    assert op_of(half.engine, "dense").stored_as == DataType.F16
    assert np.all(op_of(half.engine, "dense").weights[:, 0, 0, 1:5] == 0)


def test_weights_that_are_halves_already_are_float32_unless_asked() -> None:
    halves = normal(10, 6, 6, 33).astype(np.float16).astype(np.float32)
    exact = convert_graph(network(halves))
    assert op_of(exact.engine, "dense").stored_as == DataType.F32
    half = convert_graph(network(halves), float_weights="f16")
    np.testing.assert_array_equal(op_of(half.engine, "dense").weights, halves)


def test_a_network_without_real_weights_says_so() -> None:
    graph = golden_graph("binary_conv_threshold_64_64_pad0")
    log = PassLog()
    RoundFloatWeights().run(graph, log)
    assert log.notes == ["no layer's weights are stored as float16"]


def test_other_types_are_refused() -> None:
    with pytest.raises(ConversionError, match=r"float_weights.*'f32' or 'f16'.*'bf16'"):
        convert_graph(network(normal(10, 6, 6, 33)), float_weights="bf16")  # type: ignore[arg-type]


def test_only_halves_are_written_as_halves() -> None:
    graph = golden_graph("half_weights")
    weights = op_of(graph, "grouped").weights
    for wrong in (0.1, np.inf, np.nan, 1e6):
        weights[0, 0, 0, 0] = wrong
        with pytest.raises(ConversionError, match=r"grouped.*F16 must be finite halves"):
            to_bytes(graph)


def test_halves_that_are_not_finite_are_refused() -> None:
    contents = to_contents(golden_graph("half_weights"))
    data = bytearray(contents.data)
    at = int(contents.constants[contents.ops[0]["weights"]]["offset"])
    data[at : at + 2] = b"\x00\xfc"
    contents.data = bytes(data)
    with pytest.raises(ModelFormatError, match=r"plain.*weight 0 is infinite.*finite f16"):
        graph_from_bytes(file_bytes(contents))


def test_halves_are_no_other_constants() -> None:
    contents = to_contents(golden_graph("half_weights"))
    constants = contents.constants.copy()
    scale = constants[contents.steps[0]["constant_a"]]
    scale["dtype"], scale["size_bytes"] = DataType.F16, 2 * scale["count"]
    contents.constants = constants
    with pytest.raises(ModelFormatError, match="step 0: scales are 33 x f16, expected 33 x f32"):
        parse_contents(file_bytes(contents))


def test_the_size_of_halves_is_two_bytes_each() -> None:
    contents = to_contents(golden_graph("half_weights"))
    constants = contents.constants.copy()
    constants[contents.ops[0]["weights"]]["dtype"] = DataType.F32
    contents.constants = constants
    with pytest.raises(ModelFormatError, match=r"constant \d+: \d+ elements of 4 bytes"):
        parse_contents(file_bytes(contents))


def test_a_network_of_halves_runs_on_any_batch() -> None:
    graph = golden_graph("half_weights")
    assert {a.shape[0] for a in run(graph, integer_inputs(graph, batch=3)).values()} == {3}


@pytest.mark.parametrize("float_weights", ["f16", "i8"])
def test_the_converters_own_constants_stay_exact(float_weights: FloatWeights) -> None:
    """Weights of two values that are not opposite need a real convolution of window sums."""
    net = Source((6, 6, 32))
    value = net.add("sign", Sign(), "x")
    two_valued = net.signs(32, 3, 3, 32) * np.float32(0.3) + np.float32(0.17)
    value = net.add("conv", Conv2D(two_valued, SAME), value)
    graph = net.done(net.add("dense", Conv2D(normal(10, 6, 6, 32), DENSE), value))
    exact, rounded = (convert_graph(graph), convert_graph(graph, float_weights=float_weights))
    before, after = op_of(exact.engine, "conv/maps"), op_of(rounded.engine, "conv/maps")
    assert after.stored_as == DataType.F32
    np.testing.assert_array_equal(after.weights, before.weights)
    assert op_of(rounded.engine, "dense").stored_as != DataType.F32
