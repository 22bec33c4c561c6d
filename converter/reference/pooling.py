"""Pooling in NumPy; taps outside the map do not take part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Window
from phonebit.converter.reference.convolution import Array, pad_map, tap_view


def max_pool(x: Array, window: Window, flip: NDArray[np.bool_] | None) -> Array:
    """Maximum over the taps inside the map; minimum on channels marked in ``flip``.

    min(a, b) = -max(-a, -b), so flipped channels are negated before and after.
    """
    if flip is not None:
        signs = np.where(flip, x.dtype.type(-1), x.dtype.type(1))
        flipped: Array = max_pool(x * signs, window, None) * signs
        return flipped
    # Nothing is below -inf, and no +-1 value is below -1: such padding never wins.
    outside = -1 if x.dtype == np.int8 else -np.inf
    padded = pad_map(x, window, outside)
    size = window.output_size(x.shape[1], x.shape[2])
    best = tap_view(padded, window, size, 0, 0).copy()
    for kh in range(window.kernel[0]):
        for kw in range(window.kernel[1]):
            np.maximum(best, tap_view(padded, window, size, kh, kw), out=best)
    return best


def average_pool(x: NDArray[np.float32], window: Window) -> NDArray[np.float32]:
    """Sum over the taps inside the map, in row-major order, divided by their number, in float32."""
    size = window.output_size(x.shape[1], x.shape[2])
    padded = pad_map(x, window, 0.0)
    inside = pad_map(np.ones((1, *x.shape[1:3], 1), np.float32), window, 0.0)
    total = np.zeros((x.shape[0], *size, x.shape[3]), np.float32)
    count = np.zeros((1, *size, 1), np.float32)
    for kh in range(window.kernel[0]):
        for kw in range(window.kernel[1]):
            total += tap_view(padded, window, size, kh, kw)
            count += tap_view(inside, window, size, kh, kw)
    return total / count
