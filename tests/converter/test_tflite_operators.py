"""TensorFlow Lite's operators in models that are made here: packed inputs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import phonebit
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.tflite.execution import packed
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


def test_packed_bits_of_unknown_number_are_refused() -> None:
    tensors = [tensor("x", (1, 5, 5, 2), "int32"), tensor("y", (1, 5, 5, 64))]
    message = r"'x' holds packed bits, and nothing says how many .* got int32, \(1, 5, 5, 2\), read"
    with pytest.raises(ConversionError, match=message):
        imported(tensors, [operator("LceDequantize", [0], [1])], [1])


def test_an_unsupported_operator_with_a_state_is_named() -> None:
    """The state is a tensor that nothing computes before the operator does."""
    tensors = [tensor("x", (1, 4, 3)), tensor("state", (1, 5)), tensor("y", (1, 4, 5))]
    with pytest.raises(UnsupportedLayerError, match="UNIDIRECTIONAL_SEQUENCE_LSTM is not support"):
        imported(tensors, [operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [0, 1], [2])], [2])


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
