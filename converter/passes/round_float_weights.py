"""Float weights become halves, where that costs no more than their last bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Conv2D
from phonebit.converter.passes.store_weights import StoreWeights
from phonebit.format.records import DataType

HALF_ROUNDING: Final = 2.0**-11
"""Half the distance of two neighbouring halves, relative to the smaller one's power of two."""


class RoundFloatWeights(StoreWeights):
    """Rounds the weights of real convolutions to the nearest half, ties to even.

    Sums stay float32. A layer keeps float32 if some filter would lose more than the last bits of
    its largest weight: where that is beyond the largest half (65504) or below the smallest normal
    one (6.1e-5).

    Given::

        y = conv2d(x, weights = [0.1, -3.0])

    Result::

        y = conv2d(x, weights = [0.0999755859375, -3.0], stored as F16)
    """

    type_name = "float16"
    weight_bytes = 2

    def stored(self, op: Conv2D) -> tuple[Conv2D, float] | str:
        """See ``StoreWeights``."""
        weights, error = round_to_half(op.weights)
        if error > HALF_ROUNDING:
            return _reason(op.weights)
        return replace(op, weights=weights, stored_as=DataType.F16), error


def round_to_half(weights: FloatArray) -> tuple[FloatArray, float]:
    """Weights rounded to halves, and the largest error in units of its filter's largest weight.

    Args:
        weights: float32 (Cout, KH, KW, Cin / groups).

    Returns:
        float32 of the same shape; infinite where a weight is beyond the largest half, and so is
        the error then.
    """
    with np.errstate(over="ignore"):
        rounded = weights.astype(np.float16).astype(np.float32)
    filters = weights.reshape(len(weights), -1).astype(np.float64)
    errors = np.abs(rounded.reshape(filters.shape) - filters).max(axis=1)
    largest = np.abs(filters).max(axis=1)
    used = largest > 0
    return rounded, float(np.max(errors[used] / largest[used], initial=0.0))


def _reason(weights: FloatArray) -> str:
    largest = np.abs(weights.reshape(len(weights), -1)).max(axis=1)
    low, high = float(largest[largest > 0].min()), float(largest.max())
    return f"the filters' largest are {low:.1e} to {high:.1e}, halves hold 6.1e-05 to 6.6e+04"
