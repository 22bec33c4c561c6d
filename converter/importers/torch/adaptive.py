"""Adaptive pools: of n pixels, place i of m sees those from i n / m to (i + 1) n / m.

The first is rounded down, the last one up, so that windows can differ in size and overlap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import (
    Indices,
    View,
    hwc_of,
    plain_view,
    without_batch,
)
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.reducing import reduced
from phonebit.converter.importers.torch.tracked_tensors import Context
from phonebit.converter.ir import Operator, Window
from phonebit.converter.ops import AveragePool2D, Concat, MaxPool2D


def adaptive_pool(context: Context, call: Call) -> Any:
    """One pool where all windows are alike, else one axis after the other."""
    name, is_max = context.emission.name(call), "max" in call.op
    view = context.real(context.operand(call["self"]))
    quantized = view.quantized and is_max
    view = relayout(context.emission, view, "channels_first", name)
    height, width, channels = view.hwc
    size = hwc_of(without_batch(call.shape, context.batch), "channels_first")
    rows, columns = _alike(height, size[0]), _alike(width, size[1])
    if rows is not None and columns is not None:
        window = Window((rows[0], columns[0]), (rows[1], columns[1]))
        pool: Operator = MaxPool2D(window) if is_max else AveragePool2D(window)
        value = context.emission.emit(pool, [view.value], size, name)
        result = context.result(call, value, "channels_first", quantized=quantized)
    else:
        shape = (context.batch, channels, height, width)
        view = plain_view(view.value, shape, context.batch, "channels_first")
        for axis in (0, 1):
            if shape[2 + axis] != size[axis]:
                view = _along(context, view, axis, size[axis], is_max, f"{name}/axis{axis}")
        indices = view.indices.reshape(call.shape)
        result = context.viewed(call, replace(view, indices=indices, quantized=quantized))
    return [result, None] if is_max else result


def _windows(old: int, count: int) -> tuple[Indices, Indices]:
    """The first pixel under each window, and the one after its last."""
    numbers = np.arange(count)
    return numbers * old // count, -(-(numbers + 1) * old // count)


def _alike(old: int, count: int) -> tuple[int, int] | None:
    """Kernel and stride, if they are the same for all windows."""
    first, end = _windows(old, count)
    kernel, stride = int(end[0]), int(first[1]) if count > 1 else old
    is_alike = stride > 0 and np.all(end - first == kernel) and np.all(np.diff(first) == stride)
    return (kernel, stride) if is_alike and (old - kernel) // stride + 1 == count else None


def _along(context: Context, view: View, axis: int, count: int, is_max: bool, name: str) -> View:
    """A pool for each window along an axis, side by side; windows of one pixel only repeat it."""
    first, end = _windows(view.indices.shape[2 + axis], count)
    if np.all(end - first == 1):
        return replace(view, indices=view.indices.take(first, 2 + axis))
    values = []
    for number in range(count):
        part = replace(
            view, indices=view.indices.take(np.arange(first[number], end[number]), 2 + axis)
        )
        part = reduced(context, part, {1 + axis}, "amax" if is_max else "mean", f"{name}/{number}")
        part = relayout(context.emission, part, "channels_first", name)
        values.append(part.value)
    if count == 1:
        return part
    height, width, channels = part.hwc
    hwc = (height, width, count * channels)
    value = context.emission.emit(Concat(), values, hwc, name)
    shape = (context.batch, hwc[2], height, width)
    joined = plain_view(value, shape, context.batch, "channels_first")
    split = joined.indices.reshape(context.batch, count, channels, height, width)
    merged = np.moveaxis(split, 1, 2 + axis)
    size = (count, width) if axis == 0 else (height, count)
    return replace(joined, indices=merged.reshape(context.batch, channels, *size))


ADAPTIVE: Final = dict.fromkeys(
    (
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "_adaptive_avg_pool2d",
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
    ),
    adaptive_pool,
)
"""Rules by the names of PyTorch's operators."""
