"""TensorFlow Lite's operators in models that are made here: packed inputs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import phonebit
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.tflite.execution import _numbers, _with_outputs, packed
from phonebit.converter.importers.tflite.files import load_model
from phonebit.converter.interpreter import run
from phonebit.errors import ConversionError, UnsupportedLayerError
from support.tflite_models import constant, imported, operator, tensor

Array = NDArray[Any]
WINDOW = {"padding": 1, "stride_height": 1, "stride_width": 1}
WINDOW |= {"dilation_height_factor": 1, "dilation_width_factor": 1}


def signs(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), shape)


@pytest.mark.parametrize("channels", [32, 37, 64])
def test_an_input_of_packed_bits_is_given_as_numbers(channels: int, tmp_path: Path) -> None:
    words = -(-channels // 32)
    filters, x = signs(6, 3, 3, channels), signs(2, 5, 4, channels, seed=2)
    graph = imported(
        [
            tensor("x", (1, 5, 4, words), "int32"),
            constant("w", packed(filters)),
            constant("factor", np.arange(1, 7, dtype=np.float32) / 4),
            constant("offset", np.arange(6, dtype=np.float32) - 3),
            tensor("y", (1, 3, 2, 6)),
        ],
        [operator("LceBconv2d", [0, 1, 2, 3, -1], [4], channels_in=channels, **WINDOW)],
        [4],
    )
    conversion = convert_graph(graph)
    assert conversion.report.binary_mac_share == 1
    (tmp_path / "net.pbit").write_bytes(conversion.content)
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    sums = np.einsum("nyxcij,oijc->nyxo", windows, filters)
    expected = sums * (np.arange(1, 7, dtype=np.float32) / 4) + (np.arange(6) - 3)
    np.testing.assert_array_equal(network(x), expected)
    np.testing.assert_array_equal(network(x * np.float32(0.25)), expected)  # signs count


def test_bits_are_packed_as_larq_compute_engine_packs_them() -> None:
    numbers = np.ones((1, 1, 1, 37), np.float32)
    numbers[..., [0, 5, 33]] = -2
    assert packed(numbers).tolist() == [[[[1 + 32, 2]]]]


@pytest.mark.parametrize(
    ("words", "options"), [(1, [{}]), (2, [{}]), (1, [{"channels_in": 5}, {"channels_in": 6}])]
)
def test_packed_bits_of_unknown_number_are_refused(words: int, options: list[Any]) -> None:
    tensors = [tensor("x", (1, 5, 5, words), "int32")]
    tensors += [tensor(f"y{i}", (1, 5, 5, 32 * words)) for i in range(len(options))]
    message = rf"'x' holds packed bits, .* how many .* got int32, \(1, 5, 5, {words}\), read"
    readers = [operator("LceDequantize", [0], [i + 1], **o) for i, o in enumerate(options)]
    with pytest.raises(ConversionError, match=message):
        imported(tensors, readers, [1])


def test_an_unsupported_operator_with_a_state_is_named() -> None:
    """The state is a tensor that nothing computes before the operator does."""
    tensors = [tensor("x", (1, 4, 3)), tensor("state", (1, 5)), tensor("y", (1, 4, 5))]
    with pytest.raises(UnsupportedLayerError, match="UNIDIRECTIONAL_SEQUENCE_LSTM is not support"):
        imported(tensors, [operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [0, 1], [2])], [2])


@pytest.mark.parametrize(
    ("scale", "zero", "numbers"),
    [(0.5, 3, (-1.0, 1.0)), (0.25, 125, (-1.0, 0.5)), (0.25, -127, (-0.25, 1.0))],
)
def test_bits_become_the_integers_next_to_one(
    scale: float, zero: int, numbers: tuple[float, float]
) -> None:
    """An integer that int8 does not hold is the nearest one that it does."""
    result = tensor("y", (1, 2, 3, 5), "int8")
    result.scales, result.zeros = np.array([scale], np.float32), np.array([zero])
    tensors = [tensor("x", (1, 2, 3, 5)), tensor("b", (1, 2, 3, 1), "int32"), result]
    operators = [operator("LceQuantize", [0], [1]), operator("LceDequantize", [1], [2])]
    graph = imported(tensors, operators, [2])
    x = signs(1, 2, 3, 5)
    made = run(graph, {"x": x}, graph.outputs)[graph.outputs[0]]
    np.testing.assert_array_equal(made, np.where(x < 0, *np.float32(numbers)))


def test_results_of_the_interpreter_stand_for_numbers() -> None:
    x = signs(2, 3, 37)
    bits, integers = tensor("b", (2, 3, 2), "int32"), tensor("i", (4,), "int8")
    integers.scales, integers.zeros = np.array([0.5], np.float32), np.array([3])
    np.testing.assert_array_equal(_numbers(bits, packed(x), 37), x)
    made = _numbers(integers, np.array([-128, 0, 3, 127], np.int8), 4)
    np.testing.assert_array_equal(made, [-65.5, -1.5, 0, 62])


def test_other_tensors_can_be_the_outputs_of_a_file(tmp_path: Path) -> None:
    path = Path(__file__).parent / "fixtures" / "lce" / "real_results.tflite"
    (tmp_path / "net.tflite").write_bytes(_with_outputs(path.read_bytes(), [3, 1, 2]))
    model, _ = load_model(tmp_path / "net.tflite")
    assert model.outputs == [3, 1, 2]
    assert model.operators == load_model(path)[0].operators


def test_a_model_has_at_most_so_many_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parent / "fixtures" / "lce" / "real_results.tflite"
    tables = len(load_model(path)[0].tensors) + 2  # buffers: two more than tensors
    monkeypatch.setattr("phonebit.converter.importers.tflite.files.MAX_TABLES", tables)
    load_model(path)
    monkeypatch.setattr("phonebit.converter.importers.tflite.files.MAX_TABLES", tables - 1)
    with pytest.raises(ConversionError, match=rf"too many tables \(expected {tables - 1}"):
        load_model(path)


def test_what_nothing_computes_is_an_error() -> None:
    tensors = [tensor("x", (1, 5)), tensor("lost", (1, 5)), tensor("y", (1, 5))]
    with pytest.raises(ConversionError, match="reads 'lost', which nothing before it computes"):
        imported(tensors, [operator("ADD", [0, 1], [2])], [2])


def test_scales_of_other_types_than_integers_quantize_nothing() -> None:
    """Converters leave scales at tensors of floats and bits."""
    scaled = tensor("x", (1, 5))
    scaled.scales = np.array([0.5], np.float32)
    assert not scaled.is_quantized
    graph = imported([scaled, tensor("y", (1, 5))], [operator("RELU", [0], [1])], [1])
    assert [type(node.op).__name__ for node in graph.nodes] == ["Input", "Elementwise"]
    integers = tensor("x", (1, 5), "int8")
    assert not integers.is_quantized  # without scales: plain integers
    integers.scales = np.array([0.5], np.float32)
    assert integers.is_quantized
    with pytest.raises(ConversionError, match="input 'x' is quantized"):
        imported([integers, tensor("y", (1, 5))], [operator("RELU", [0], [1])], [1])
