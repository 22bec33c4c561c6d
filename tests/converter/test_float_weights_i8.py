"""Float weights stored as 8-bit integers: how they are rounded, and what file and report say."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import integers
from test_float_weights import network, normal, op_of

from phonebit.converter.convert import convert_graph
from phonebit.converter.cost import bytes_moved
from phonebit.converter.interpreter import run
from phonebit.converter.ops import Conv2D
from phonebit.converter.ops.epilogue import Clamp, Epilogue, ScaleBias
from phonebit.converter.passes.base import PassLog
from phonebit.converter.passes.quantize_float_weights import (
    QuantizeFloatWeights,
    quantized,
    scaled,
)
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import ConversionError, ModelFormatError
from phonebit.format.reader import parse_contents
from phonebit.format.records import DataType
from phonebit.format.writer import file_bytes
from support.engine_net import SAME3, Net
from support.golden import golden_graph


def test_the_largest_weight_of_each_filter_becomes_127() -> None:
    weights = np.float32([[0.5, -1.0, 0.0], [3.0, 1.5, -0.01], [0, 0, 0]]).reshape(3, 1, 1, 3)
    units, scale = quantized(weights)
    np.testing.assert_array_equal(
        units.reshape(3, 3),
        [[64, -127, 0], [127, 64, 0], [0, 0, 0]],  # 63.5 goes to even
    )
    np.testing.assert_array_equal(scale, np.float32([1 / 127, 3 / 127, 1]))
    assert not np.signbit(units[units == 0]).any()


def test_no_weight_changes_by_more_than_half_a_unit() -> None:
    weights = normal(50, 3, 3, 7)
    units, scale = quantized(weights)
    again = units.astype(np.float64) * scale.reshape(-1, 1, 1, 1)
    assert np.abs(units).max() == 127
    assert np.all(np.abs(again - weights) <= 0.5001 * scale.reshape(-1, 1, 1, 1))


def test_the_scale_is_the_first_step_or_within_it() -> None:
    scale = np.float32([0.5, 0.25])
    alone = scaled(Epilogue([Clamp(0, 1)]), scale).steps
    assert isinstance(alone[0], ScaleBias)
    np.testing.assert_array_equal(alone[0].scale, scale)
    assert not alone[0].bias.any()
    assert alone[1] == Clamp(0, 1)
    (merged,) = scaled(Epilogue([ScaleBias(np.float32([2, 3]), np.float32([5, 7]))]), scale).steps
    assert isinstance(merged, ScaleBias)
    np.testing.assert_array_equal(merged.scale, np.float32([1, 0.75]))
    np.testing.assert_array_equal(merged.bias, np.float32([5, 7]))


def test_a_network_of_bytes_computes_nearly_the_same() -> None:
    weights = normal(10, 6, 6, 33)
    exact = convert_graph(network(weights))
    bytes_ = convert_graph(network(weights), float_weights="i8")
    for name in ("stem", "dense"):
        assert op_of(bytes_.engine, name).stored_as == DataType.I8
    x = integers(bytes_.engine)
    for name, array in run(bytes_.engine, x).items():
        expected = run(exact.engine, x)[name]
        # After the rounded stem some bits are others.
        assert np.abs(array - expected).max() <= 0.1 * np.abs(expected).max()
        again = run(graph_from_bytes(bytes_.content), x)[name]
        np.testing.assert_array_equal(again, array)


def test_the_file_says_what_the_graph_says() -> None:
    bytes_ = convert_graph(network(normal(10, 6, 6, 33)), float_weights="i8")
    again = graph_from_bytes(bytes_.content)
    assert op_of(again, "dense").stored_as == DataType.I8
    assert to_bytes(again, parse_contents(bytes_.content).metadata) == bytes_.content


def test_sizes_count_one_byte_a_weight_and_the_report_says_so() -> None:
    weights = normal(10, 6, 6, 33)
    exact = convert_graph(network(weights))
    bytes_ = convert_graph(network(weights), float_weights="i8")
    saved = 3 * (weights.size + 32 * 27)
    steps = 2 * 4 * 10  # the dense layer had no step
    assert bytes_moved(exact.engine) - bytes_moved(bytes_.engine) in (saved - steps, saved - 336)
    note = next(note for note in bytes_.report.notes if "int8" in note)
    assert note.startswith("2 layers with weights stored as int8: 12.7 kB instead of 51.0; ")
    assert float(note.split("at most ")[1].split()[0]) <= 0.5 / 127 + 5e-5


@pytest.mark.parametrize("value", [1e-38, 1e-42])
def test_filters_too_small_for_a_scale_stay_float32(value: float) -> None:
    weights = normal(10, 6, 6, 33)
    weights[4] = value
    bytes_ = convert_graph(network(weights), float_weights="i8")
    assert op_of(bytes_.engine, "dense").stored_as == DataType.F32
    note = next(note for note in bytes_.report.notes if note.startswith("dense: "))
    assert "stay float32" in note


def test_a_network_without_real_weights_says_so() -> None:
    log = PassLog()
    QuantizeFloatWeights().run(golden_graph("binary_conv_threshold_64_64_pad0"), log)
    assert log.notes == ["no layer's weights are stored as int8"]


def test_only_integers_are_written_as_bytes() -> None:
    for wrong in (0.5, 128, -128, np.inf, np.nan):
        net = Net("wrong")
        x = net.input("x", (4, 4, 2))
        weights = np.full((3, 3, 3, 2), 5, np.float32)
        weights[1, 0, 0, 0] = wrong
        graph = net.done(net.op("conv", Conv2D(weights, SAME3, stored_as=DataType.I8), x))
        with pytest.raises(ConversionError, match=r"conv.*I8 must be integers from -127 to 127"):
            to_bytes(graph)


def test_minus_128_is_refused() -> None:
    contents = to_contents(golden_graph("byte_weights"))
    data = bytearray(contents.data)
    data[int(contents.constants[contents.ops[0]["weights"]]["offset"])] = 0x80
    contents.data = bytes(data)
    with pytest.raises(ModelFormatError, match=r"plain.*weight 0 is -128, expected i8 from -127"):
        graph_from_bytes(file_bytes(contents))
