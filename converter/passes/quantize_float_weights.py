"""Float weights become 8-bit integers and a scale per filter."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Conv2D
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.store_weights import StoreWeights
from phonebit.format.records import DataType

LARGEST_WEIGHT: Final = 127
"""Symmetric: -128 is not used, so that a kernel may change a weight's sign."""


class QuantizeFloatWeights(StoreWeights):
    """Rounds the weights of real convolutions to 8-bit integers, each filter by its own scale.

    The filter's largest weight becomes 127 or -127; the scale becomes the first step after the
    sum, so that the op stays what it is: a float32 sum of inputs times weights, which happen to be
    integers. A layer keeps float32 if a filter has no finite scale of full precision.

    Source: Jacob et al., CVPR 2018, with symmetric weights; uLayer, EuroSys 2019, section 4.2.

    Given::

        y = conv2d(x, weights = [0.1, -3.0]) * s + b

    Result::

        y = conv2d(x, weights = [4, -127], stored as I8) * (3/127 * s) + b
    """

    type_name = "int8"
    weight_bytes = 1

    def stored(self, op: Conv2D) -> tuple[Conv2D, float] | str:
        """See ``StoreWeights``."""
        integers, scale = quantized(op.weights)
        if not np.all(np.isfinite(scale) & (scale >= np.finfo(np.float32).tiny)):
            return (
                f"a filter's largest weight is {scale.min() * LARGEST_WEIGHT:.1e}, "
                "too small for a scale of full precision"
            )
        epilogue = scaled(op.epilogue, scale)
        stored = replace(op, weights=integers, epilogue=epilogue, stored_as=DataType.I8)
        return stored, _error(op.weights, integers, scale)


def quantized(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights as integers and scales.

    Args:
        weights: float32 (Cout, KH, KW, Cin / groups).

    Returns:
        Integers from -127 to 127, float32 of the same shape, the nearest ones, halves to even; and
        float32 (Cout,): what one unit of each filter stands for; 1 for a filter of zeros.
    """
    filters = weights.reshape(len(weights), -1).astype(np.float64)
    largest = np.abs(filters).max(axis=1)
    scale = np.where(largest > 0, largest / LARGEST_WEIGHT, 1.0).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        units = np.rint(filters / scale[:, None].astype(np.float64))
    integers = np.clip(units, -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.float32)
    return integers.reshape(weights.shape) + np.float32(0), scale  # -0 becomes 0


def scaled(epilogue: Epilogue, scale: FloatArray) -> Epilogue:
    """The epilogue that first multiplies by ``scale``; within its first step, if that scales."""
    steps = list(epilogue.steps)
    if steps and isinstance(steps[0], ScaleBias):
        both = (steps[0].scale.astype(np.float64) * scale).astype(np.float32)
        steps[0] = ScaleBias(both, steps[0].bias)
    else:
        steps.insert(0, ScaleBias(scale, np.zeros_like(scale)))
    return replace(epilogue, steps=steps)


def _error(weights: FloatArray, integers: FloatArray, scale: FloatArray) -> float:
    """The largest change of a weight, as a share of its filter's largest."""
    filters = weights.reshape(len(weights), -1)
    again = integers.reshape(filters.shape).astype(np.float64) * scale[:, None]
    largest = np.abs(filters).max(axis=1, keepdims=True)
    changes = np.abs(again - filters) / np.where(largest > 0, largest, 1)
    return float(changes.max(initial=0.0))
