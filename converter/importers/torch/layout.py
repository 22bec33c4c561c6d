"""Turns views back into values of a wanted layout, with the cheapest operator that does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from phonebit.converter.importers.torch.element_positions import (
    ZERO,
    Indices,
    Layout,
    UnsupportedError,
    View,
    hwc_of,
    in_layout,
    plain_view,
)
from phonebit.converter.importers.torch.emission import Emission
from phonebit.converter.ir import Shape, Window
from phonebit.converter.ops import Conv2D, MaxPool2D, Reshape, SelectChannels

MAX_GATHERED: Final = 1 << 20
"""Channels of the widest value: what a gather of single elements can have."""
MAX_TAPS: Final = 64
"""Of a filter of zeros and a one; a gather is faster than larger ones."""


def relayout(emission: Emission, view: View, layout: Layout, name: str) -> View:
    """A view of a value that has the tensor's elements in the order of ``layout``.

    Args:
        emission: Receives the nodes that are needed, if any.
        view: Any view.
        layout: What the next operator reads.
        name: The next operator's name, under which the nodes are called.

    Raises:
        UnsupportedError: The arrangement cannot be expressed.
    """
    target = in_layout(view.sample(), layout)
    value = _arranged(emission, view, target, name)
    plain = plain_view(value, view.indices.shape, view.batch, layout)
    return View(plain.value, plain.hwc, plain.indices, plain.batch, view.quantized)


def own_layout(view: View) -> Layout:
    """The layout in which a tensor lies already, if there is one."""
    last = plain_view(view.value, view.indices.shape, view.batch, "channels_last")
    is_last = last.hwc == view.hwc and np.array_equal(last.indices, view.indices)
    return "channels_last" if is_last else "channels_first"


def some_channels(emission: Emission, view: View, name: str) -> View | None:
    """The view of a selection of channels, if the tensor has all pixels of some channels once."""
    height, width, channels = view.hwc
    sample = view.sample()
    chosen = np.unique(sample % channels)
    pixels = height * width
    if (
        sample.size != pixels * chosen.size
        or np.unique(sample).size != sample.size
        or ZERO in sample
    ):
        return None
    hwc = (height, width, chosen.size)
    target = (np.arange(pixels)[:, None] * channels + chosen).reshape(hwc)
    value = _arranged(emission, view, target, name)
    places = np.searchsorted(chosen, view.indices % channels)
    indices = view.indices // channels * chosen.size + places
    return View(value, hwc, indices, view.batch, view.quantized)


def flattened(emission: Emission, view: View, name: str) -> View:
    """A view of a value (1, 1, F) that has the same elements; their order stays as it is."""
    if view.hwc[:2] == (1, 1):
        return view
    hwc = (1, 1, view.elements)
    value = emission.emit(Reshape(hwc), [view.value], hwc, f"{name}/flatten")
    return View(value, hwc, view.indices, view.batch, view.quantized)


def _arranged(emission: Emission, view: View, target: Indices, name: str) -> str:
    """The value of shape ``target.shape`` whose element i is the view's element target[i]."""
    shape = hwc_of(target.shape, "channels_last")
    if target.size == view.elements and np.array_equal(
        target.reshape(-1), np.arange(view.elements)
    ):
        if shape == view.hwc:
            return view.value
        return emission.emit(Reshape(shape), [view.value], shape, f"{name}/reshape")
    pattern = _pattern(target, view.hwc)
    quantizer = emission.quantizer(view.value)
    if quantizer is not None and not (target == ZERO).any() and not _keeps_channels(pattern):
        # Selected bits would be real numbers; the quantizer of what is selected is one.
        inner = _arranged(emission, replace(view, value=quantizer.inputs[0]), target, name)
        return emission.emit(quantizer.op, [inner], shape, f"{name}/quantizer")
    if pattern is not None:
        value = _windowed(emission, view, pattern, shape, name)
        if value is not None:
            return value
    rows = _row_pattern(target, view)
    if rows is not None:
        return _within_rows(emission, view, rows, shape, name)
    if target.size > MAX_GATHERED and _is_transposed(target, view):
        return _transposed(emission, view, shape, name)
    return _gathered(emission, view, target, shape, name)


@dataclass(frozen=True)
class _Pattern:
    """Output pixel (y, x), channel k is the input's (top[k] + sy * y, left[k] + sx * x, source[k]).

    ``source`` is -1 for channels of zeros.
    """

    strides: tuple[int, int]
    top: Indices
    left: Indices
    source: Indices


def _pattern(target: Indices, hwc: Shape) -> _Pattern | None:
    height, width, channels = hwc
    zeros = target == ZERO
    empty = zeros.all(axis=(0, 1))
    if not np.array_equal(zeros, np.broadcast_to(empty, target.shape)) or empty.all():
        return None
    row, column, source = (
        target // (width * channels),
        target // channels % width,
        target % channels,
    )
    filled = int(np.argmin(empty))
    sy = int(row[1, 0, filled] - row[0, 0, filled]) if target.shape[0] > 1 else height
    sx = int(column[0, 1, filled] - column[0, 0, filled]) if target.shape[1] > 1 else width
    top, left, first = row[0, 0], column[0, 0], source[0, 0]
    ys = top + np.arange(target.shape[0])[:, None, None] * sy
    xs = left + np.arange(target.shape[1])[None, :, None] * sx
    expected = np.where(empty, ZERO, (ys * width + xs) * channels + first)
    inside = ((ys < height) & (xs < width)) | empty  # and do not go on in the next row
    if sy < 1 or sx < 1 or not inside.all() or not np.array_equal(expected, target):
        return None
    return _Pattern(
        (sy, sx), np.where(empty, 0, top), np.where(empty, 0, left), np.where(empty, ZERO, first)
    )


def _keeps_channels(pattern: _Pattern | None) -> bool:
    """Whether it only leaves out pixels, which a pool of one pixel does."""
    if pattern is None or pattern.top.any() or pattern.left.any():
        return False
    return np.array_equal(pattern.source, np.arange(pattern.source.size))


def _windowed(
    emission: Emission, view: View, pattern: _Pattern, shape: Shape, name: str
) -> str | None:
    """A pool of one pixel or a kernel of zeros and ones, then a selection of channels."""
    height, width, channels = view.hwc
    value = view.value
    tops, lefts = pattern.top[pattern.source >= 0], pattern.left[pattern.source >= 0]
    if np.all(tops == tops[0]) and np.all(lefts == lefts[0]):
        pixels = (shape[0], shape[1], channels)
        pool = Window((1, 1), pattern.strides)
        if pool.output_size(height, width) == shape[:2] and not tops[0] and not lefts[0]:
            if pixels != view.hwc:
                value = emission.emit(MaxPool2D(pool), [value], pixels, f"{name}/every_other")
        else:
            same = np.zeros(channels, np.int64)
            cropped = _Pattern(
                pattern.strides, same + tops[0], same + lefts[0], np.arange(channels)
            )
            cut = _one_hot(view.hwc, shape, cropped, groups=channels)
            if cut is None:
                return None
            value = emission.emit(cut, [value], pixels, f"{name}/crop")
        if np.array_equal(pattern.source, np.arange(channels)):
            return value
        select = SelectChannels(pattern.source.astype(np.int32))
        return emission.emit(select, [value], shape, f"{name}/select")
    per_channel = shape[2] // channels
    own = np.array_equal(pattern.source, np.arange(shape[2]) // max(1, per_channel))
    groups = channels if own and shape[2] % channels == 0 else 1
    kernel = _one_hot(view.hwc, shape, pattern, groups)
    if kernel is None:
        return None
    return emission.emit(kernel, [value], shape, f"{name}/rearrange")


def _one_hot(hwc: Shape, shape: Shape, pattern: _Pattern, groups: int) -> Conv2D | None:
    """A convolution that copies one element of its window into each output channel.

    The kernel reaches from the first pixel to where the last window ends at the map's edge, so that
    the output has the wanted size. None if that is too large.
    """
    kernel = (
        hwc[0] - (shape[0] - 1) * pattern.strides[0],
        hwc[1] - (shape[1] - 1) * pattern.strides[1],
    )
    per_group = hwc[2] // groups
    if kernel[0] * kernel[1] * per_group > MAX_TAPS:
        return None
    weights = np.zeros((len(pattern.source), *kernel, per_group), np.float32)
    filled = np.flatnonzero(pattern.source >= 0)
    taps = pattern.source[filled] % per_group
    weights[filled, pattern.top[filled], pattern.left[filled], taps] = 1
    return Conv2D(weights, Window(kernel, pattern.strides), groups)


def _row_pattern(target: Indices, view: View) -> Indices | None:
    """The elements of one row that become one of as many equal parts of the target, if they do.

    Depth to space, and the nearest pixels of larger maps, do.
    """
    height, width, channels = view.hwc
    if target.size % height or height == 1 or (target == ZERO).any():
        return None
    rows = target.reshape(height, -1) - np.arange(height)[:, None] * (width * channels)
    inside = rows[0].min() >= 0 and rows[0].max() < width * channels
    same = inside and bool((rows == rows[0]).all())
    return rows[0] if same and max(rows.shape[1], width * channels) <= MAX_GATHERED else None


def _within_rows(emission: Emission, view: View, elements: Indices, shape: Shape, name: str) -> str:
    """An arrangement of each row alone: a selection among its elements as channels."""
    height, width, channels = view.hwc
    value, hwc = view.value, (height, 1, width * channels)
    if hwc != view.hwc:
        value = emission.emit(Reshape(hwc), [value], hwc, f"{name}/rows")
    hwc = (height, 1, elements.size)
    select = SelectChannels(elements.astype(np.int32))
    value = emission.emit(select, [value], hwc, f"{name}/select")
    return value if hwc == shape else emission.emit(Reshape(shape), [value], shape, f"{name}/map")


def _is_transposed(target: Indices, view: View) -> bool:
    """Whether the few channels of all pixels lie one after the other: (C, H, W) as (H, W, C)."""
    channels = target.shape[2]
    if channels > MAX_TAPS or target.size != view.elements:
        return False
    places = np.arange(target.size).reshape(channels, -1).T
    return np.array_equal(target.reshape(places.shape), places)


def _transposed(emission: Emission, view: View, shape: Shape, name: str) -> str:
    """A kernel that sees, from each pixel of the first channel on, that of all channels below."""
    height, width, channels = shape
    hwc = (channels * height, width, 1)
    value = emission.emit(Reshape(hwc), [view.value], hwc, f"{name}/stacked")
    weights = np.eye(channels, dtype=np.float32).reshape(channels, channels, 1, 1)
    kernel = Conv2D(weights, Window((channels, 1), dilation=(height, 1)))
    return emission.emit(kernel, [value], shape, f"{name}/transpose")


def _gathered(emission: Emission, view: View, target: Indices, shape: Shape, name: str) -> str:
    """Any arrangement, as a selection among the elements of the flattened value."""
    if max(target.size, view.elements) > MAX_GATHERED:
        raise UnsupportedError(
            f"rearranges {target.size} elements in a way that no layer expresses; at most "
            f"{MAX_GATHERED} can be gathered one by one"
        )
    flat = flattened(emission, view, name)
    select = SelectChannels(target.reshape(-1).astype(np.int32))
    value = emission.emit(select, [flat.value], (1, 1, target.size), f"{name}/gather")
    if shape[:2] == (1, 1):
        return value
    return emission.emit(Reshape(shape), [value], shape, f"{name}/unflatten")
