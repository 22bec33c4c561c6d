"""Convolutions in NumPy: float32, and exact integers for two-valued weights."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from phonebit.converter.ir import Window

Array = NDArray[Any]

FLOAT32_EXACT: Final = 1 << 24
"""Sums of integers whose every partial sum stays below this are exact in float32."""
PATCH_BYTES: Final = 32 << 20
"""Rows of the output are computed in blocks whose patch matrix stays about this big."""


def pad_map(x: Array, window: Window, value: float) -> Array:
    """Surrounds a batch of maps (N, H, W, C) with ``value`` as the window asks."""
    top, left, bottom, right = window.pads
    if not any(window.pads):
        return x
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    return np.pad(x, pads, constant_values=x.dtype.type(value))


def convolve(x: Array, weights: Array, window: Window, groups: int, pad_value: float) -> Array:
    """Convolution in the common float type of its operands.

    Args:
        x: Maps, shape (N, H, W, Cin).
        weights: Shape (Cout, KH, KW, Cin / groups); output channel o reads group
            ``o // (Cout / groups)`` of the input channels.
        window: Geometry.
        groups: Divides Cin and Cout.
        pad_value: What the taps outside the map count as.

    Returns:
        Shape (N, Ho, Wo, Cout), of ``x``'s type.
    """
    padded = pad_map(x, window, pad_value)
    if groups == x.shape[3]:
        return _convolve_depthwise(padded, weights, window, x.shape[1:3])
    per_in, per_out = x.shape[3] // groups, weights.shape[0] // groups
    parts = [
        _convolve_group(
            padded[..., group * per_in : (group + 1) * per_in],
            weights[group * per_out : (group + 1) * per_out],
            window,
        )
        for group in range(groups)
    ]
    return parts[0] if groups == 1 else np.concatenate(parts, axis=3)


def _convolve_group(padded: Array, weights: Array, window: Window) -> Array:
    """Patch matrix times weights, in blocks of output rows."""
    cout = weights.shape[0]
    flat_weights = weights.reshape(cout, -1).T
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilation, strict=True)]
    views = sliding_window_view(padded, spans, axis=(1, 2))
    patches = views[
        :,
        :: window.strides[0],
        :: window.strides[1],
        :,
        :: window.dilation[0],
        :: window.dilation[1],
    ].transpose(0, 1, 2, 4, 5, 3)
    batch, height, width = patches.shape[:3]
    taps = flat_weights.shape[0]
    result = np.empty((batch, height, width, cout), padded.dtype)
    rows = max(1, PATCH_BYTES // max(1, width * taps * padded.itemsize))
    for image in range(batch):
        for begin in range(0, height, rows):
            block = patches[image, begin : begin + rows]
            product = block.reshape(-1, taps) @ flat_weights
            result[image, begin : begin + rows] = product.reshape(*block.shape[:2], cout)
    return result


def _convolve_depthwise(
    padded: Array, weights: Array, window: Window, size: tuple[int, ...]
) -> Array:
    """One input channel per group: a sum over taps of whole maps, in (kh, kw) order."""
    channels = padded.shape[3]
    multiplier = weights.shape[0] // channels
    height, width = window.output_size(size[0], size[1])
    total = np.zeros((padded.shape[0], height, width, channels, multiplier), padded.dtype)
    for kh in range(window.kernel[0]):
        for kw in range(window.kernel[1]):
            tap = tap_view(padded, window, (height, width), kh, kw)
            total += tap[..., None] * weights[:, kh, kw, 0].reshape(channels, multiplier)
    return total.reshape(*total.shape[:3], -1)


def tap_view(padded: Array, window: Window, size: tuple[int, int], kh: int, kw: int) -> Array:
    """What tap (kh, kw) of the window sees at every output position, from an already padded map."""
    top, left = kh * window.dilation[0], kw * window.dilation[1]
    return padded[
        :,
        top : top + (size[0] - 1) * window.strides[0] + 1 : window.strides[0],
        left : left + (size[1] - 1) * window.strides[1] + 1 : window.strides[1],
    ]


def convolve_integers(
    x: Array, weights: Array, window: Window, groups: int, pad_value: int
) -> NDArray[np.int32]:
    """Exact integer convolution of small integers with -1/+1 weights.

    Matrix products of integers are slow in NumPy; those of floats are fast, and exact as long as no
    partial sum can reach the first integer that the float type skips.
    """
    taps = int(np.prod(weights.shape[1:]))
    largest = max(abs(pad_value), int(np.max(np.abs(x.astype(np.int64)), initial=1)))
    exact = np.float32 if taps * largest < FLOAT32_EXACT else np.float64
    sums = convolve(x.astype(exact), weights.astype(exact), window, groups, pad_value)
    return sums.astype(np.int32)
