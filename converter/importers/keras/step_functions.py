"""Step functions of one number, and the exact float32 numbers at which they jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import SMALLEST, FloatArray
from phonebit.converter.ops import Quantize, Sign

Step = Sign | Quantize
"""What a step function becomes in the graph."""

TINY: Final = np.finfo(np.float32).tiny
"""The smallest normal float32. TensorFlow flushes what is smaller to 0."""


def ordered(values: FloatArray) -> NDArray[np.int64]:
    """Integers in the order of float32 numbers, consecutive ones for neighbours; -0 is 0."""
    bits = np.asarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def from_ordered(order: NDArray[np.int64]) -> FloatArray:
    """The float32 numbers with these places in the order; 0 is +0."""
    magnitudes = np.abs(order).astype(np.int32).view(np.float32)
    return np.where(order < 0, -magnitudes, magnitudes)


def find_steps(
    function: Callable[[FloatArray], FloatArray], values: FloatArray, low: float, high: float
) -> Quantize:
    """The quantizer that an increasing step function is, by bisection over all float32 numbers.

    Args:
        function: Takes and gives float32 arrays of one shape, elementwise; increasing.
        values: All of its values, ascending, shape (n + 1,).
        low: A number at which it has its lowest value.
        high: A number at which it has its highest value.

    Returns:
        Thresholds: for each value but the lowest the smallest number that reaches it.
    """
    wanted = values[1:]
    below = np.repeat(ordered(np.array([low], np.float32)), wanted.size)
    reached = np.repeat(ordered(np.array([high], np.float32)), wanted.size)
    while np.any(reached - below > 1):
        middle = (below + reached) // 2
        enough = function(from_ordered(middle)) >= wanted
        reached, below = np.where(enough, middle, reached), np.where(enough, below, middle)
    return Quantize(_without_flushing(from_ordered(reached)), values.astype(np.float32))


def _without_flushing(thresholds: FloatArray) -> FloatArray:
    """A jump next to 0 as it is without the flushing: "v >= 0" or "v > 0" of every number."""
    positive = (thresholds > 0) & (thresholds <= TINY)
    negative = (thresholds > -TINY) & (thresholds <= 0)
    thresholds = np.where(positive, np.float32(SMALLEST), thresholds)
    return np.where(negative, np.float32(0), thresholds)


def simplest(step: Quantize) -> Step:
    """The operator Sign, if that is what it is."""
    if np.array_equal(step.values, [-1, 1]):
        return Sign(float(step.thresholds[0]))
    return step


def apply(step: Step, numbers: FloatArray) -> FloatArray:
    """The step function of an array of any shape, as float32."""
    if isinstance(step, Sign):
        return np.where(numbers >= np.float32(step.threshold), np.float32(1), np.float32(-1))
    chosen: FloatArray = step.values[np.searchsorted(step.thresholds, numbers, side="right")]
    return chosen
