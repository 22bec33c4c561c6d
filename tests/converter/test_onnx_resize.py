"""Resize by factors that are no fractions of two: sizes and pixels in float32's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.interpreter import run
from phonebit.errors import UnsupportedLayerError
from support.onnx_models import assert_equal_to_onnx, negated, single

PYTORCH = {
    (10, 0.7): [0, 1, 2, 4, 5, 7, 8],
    (10, 1.3): [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9],
    (6, 1.2): [0, 0, 1, 2, 3, 4, 5],
    (6, 1.6): [0, 0, 1, 1, 2, 3, 3, 4, 5],
    (5, 0.6): [0, 1, 3],
    (9, 1.1): [0, 1, 2, 3, 4, 5, 6, 7, 8],
}
"""What F.interpolate(mode="nearest") and ONNX Runtime give, by width and factor."""


def resize(width: int, factor: float, shape: Any = None, **attributes: Any) -> onnx.ModelProto:
    shape = shape or (1, 1, 1, width)
    scales = np.ones(4, np.float32)
    scales[-1] = factor
    return single("Resize", shape, None, scales, opset=13, **attributes)


@pytest.mark.parametrize(("width", "factor"), PYTORCH)
def test_nearest_pixels_are_pytorch_s(width: int, factor: float) -> None:
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    graph = import_onnx(resize(width, factor, mode="nearest", **options))
    x = np.arange(width, dtype=np.float32).reshape(1, 1, width, 1)
    assert run(graph, {"x": x})[graph.outputs[0]].ravel().tolist() == PYTORCH[width, factor]


def test_sizes_and_pixels_are_those_of_onnx_runtime() -> None:
    """Without ties of places between two pixels, which each of its versions rounds its own way."""
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for width in range(2, 24):
        for factor in (0.3, 0.6, 0.7, 0.9, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 2.3, 1 / 3, 2 / 3):
            if np.float32(width) * np.float32(factor) < 1:
                continue
            made = resize(width, factor, mode="nearest", **options)
            session = runtime.InferenceSession(made.SerializeToString())
            x = np.arange(width, dtype=np.float32)
            (expected,) = session.run(None, {"x": x.reshape(1, 1, 1, width)})
            graph = import_onnx(made)
            result = run(graph, {"x": x.reshape(1, 1, width, 1)})[graph.outputs[0]]
            assert result.ravel().tolist() == expected.ravel().tolist(), (width, factor)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation_takes_factors_that_are_right_in_float32(mode: str) -> None:
    """ONNX's reference evaluator makes 6 pixels of 10, ONNX Runtime 7."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    assert_equal_to_onnx(negated(resize(10, 0.7, (1, 2, 1, 10), mode=mode)), tolerance=2e-5)


def test_interpolation_by_another_factor_than_that_of_the_sizes_is_refused() -> None:
    with pytest.raises(UnsupportedLayerError, match="makes 7 of 11 pixels by a scale"):
        import_onnx(resize(11, 0.7, mode="linear"))


@pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, 1e9])
def test_impossible_factors_are_refused(factor: float) -> None:
    with pytest.raises(UnsupportedLayerError, match="has scales"):
        import_onnx(resize(11, factor, mode="nearest"))
