"""Where a function of one float32 number jumps: found by asking the framework, not by solving.

Every float32 has a key, an integer with the same order, so that a bisection over keys visits no
number twice and ends at the very number where PyTorch's own rounded arithmetic changes its mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import SMALLEST, FloatArray

Function = Callable[[NDArray[Any]], NDArray[Any]]
"""From a one-dimensional float32 array to an array of its length."""

MAX_LEVELS: Final = 256
LARGEST_KEY: Final = int(np.float32(np.finfo(np.float32).max).view(np.int32))
TINY: Final = float(np.finfo(np.float32).tiny)
VECTOR: Final = 64
"""PyTorch computes whole vectors and what is left over in different ways: ask for whole vectors."""


def keys_of(numbers: FloatArray) -> NDArray[np.int64]:
    """Integers in the order of the float32 numbers; 0 for both zeros."""
    bits = numbers.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def numbers_of(keys: NDArray[np.int64]) -> FloatArray:
    """The inverse of ``keys_of``."""
    bits = np.abs(keys).astype(np.int32)
    return np.where(keys < 0, -bits.view(np.float32), bits.view(np.float32)).astype(np.float32)


def jumps(function: Function, breaks: Sequence[float]) -> FloatArray | None:
    """Where a step function changes.

    Args:
        function: Constant but for jumps; monotone between neighbouring ``breaks``.
        breaks: Numbers at which a monotone part may begin, in any order.

    Returns:
        Ascending thresholds: the first number of each step but the lowest, with subnormal ones
        moved to 0 or ``SMALLEST``. None if there are ``MAX_LEVELS`` or more.
    """
    edges = {-LARGEST_KEY, LARGEST_KEY + 1}
    edges |= {int(key) for key in keys_of(np.array(list(breaks), np.float32))}
    starts = np.array(sorted(edges), np.int64)
    found = [starts[1:-1]]  # a jump may lie between two monotone parts
    low, high = starts[:-1], starts[1:] - 1
    while low.size:
        differs = evaluate(function, low) != evaluate(function, high)
        low, high = low[differs], high[differs]
        if low.size >= MAX_LEVELS:
            return None
        close = high - low == 1
        found.append(high[close])
        low, high = low[~close], high[~close]
        middle = (low + high) // 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    thresholds = np.unique(np.concatenate(found))
    real = evaluate(function, thresholds) != evaluate(function, thresholds - 1)
    return _without_subnormals(numbers_of(thresholds[real]))


def evaluate(function: Function, keys: NDArray[np.int64]) -> NDArray[Any]:
    """What the framework computes at the numbers with these keys."""
    numbers = numbers_of(keys)
    padded = np.resize(numbers, -(-max(1, numbers.size) // VECTOR) * VECTOR)
    if not numbers.size:
        return numbers
    return function(padded)[: numbers.size]


def _without_subnormals(thresholds: FloatArray) -> FloatArray:
    """Scaling may underflow next to 0, which no network means and no device keeps."""
    tiny = np.abs(thresholds) < TINY
    moved = np.where(tiny, np.where(thresholds > 0, np.float32(SMALLEST), 0), thresholds)
    return np.unique(moved.astype(np.float32))
