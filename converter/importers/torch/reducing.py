"""Reductions over pixels, channels or both: sums, extremes, moments, norms and argmax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.arithmetic import two_tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.curves import write_steps
from phonebit.converter.importers.torch.element_positions import (
    Layout,
    UnsupportedError,
    View,
    hwc_of,
    plain_view,
)
from phonebit.converter.importers.torch.layout import MAX_GATHERED, own_layout, relayout
from phonebit.converter.importers.torch.pointwise import affine, whole, write, write_step
from phonebit.converter.importers.torch.pooling import sum_of_windows
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray, Operator, Window
from phonebit.converter.ops import AveragePool2D, Conv2D, MaxPool2D, Reshape, Sign
from phonebit.converter.ops.epilogue import AddTensor, MultiplyTensor, PRelu
from phonebit.converter.ops.epilogue.functions import Sqrt

Axes = set[int]
"""Of a tensor without its batch."""


def reduction(context: Context, call: Call) -> Any:
    """mean, sum and the extremes; max and min return the places of the extremes, too.

    Raises:
        UnsupportedError: It is over the batch.
    """
    view, axes = _operand(context, call)
    op, name = {"max": "amax", "min": "amin"}.get(call.op, call.op), context.emission.name(call)
    value = _viewed(context, call, reduced(context, view, axes, op, name))
    if call.op == op:
        return value

    def places() -> View:
        found = _places(context, view, axes, op == "amin", f"{name}/places")
        return replace(found, indices=found.indices.reshape(call.shape))

    return [value, Value(call.shape, "int64", emit=places)]


def norm(context: Context, call: Call) -> Value:
    """linalg_vector_norm of order 1, 2 or infinity."""
    view, axes = _operand(context, call)
    name, order = context.emission.name(call), float(call["ord"])
    if order not in (1, 2, math.inf):
        raise UnsupportedError(f"is a norm of order {order:g}; expected 1, 2 or inf")
    if order == 2:
        squares = write_steps(context, view, [MultiplyTensor(1)], f"{name}/squares")
        total = reduced(context, squares, axes, "sum", f"{name}/sum")
        return _viewed(context, call, write_step(context, total, Sqrt(), name))
    view = whole(context, view, name)
    sizes = write_step(context, view, PRelu(_numbers(-1, view.hwc[2])), f"{name}/abs")
    op = "sum" if order == 1 else "amax"
    return _viewed(context, call, reduced(context, sizes, axes, op, name))


def variance(context: Context, call: Call) -> Value:
    """var, and its root std."""
    view, axes = _operand(context, call)
    name = context.emission.name(call)
    mean = reduced(context, view, axes, "mean", f"{name}/mean")
    view = centred(context, view, mean, f"{name}/centred")
    squares = write_steps(context, view, [MultiplyTensor(1)], f"{name}/squares")
    result = reduced(context, squares, axes, "mean", f"{name}/variance")
    count = view.indices.size // result.indices.size
    correction = call["correction"]
    if correction is None:
        correction = call["unbiased"] is not False
    if correction:
        if count <= correction:
            raise UnsupportedError(f"is the variance of {count} elements")
        factor = _numbers(count / (count - float(correction)))
        result = affine(context, result, factor, _numbers(0), f"{name}/corrected")
    if call.op == "std":
        result = write_step(context, result, Sqrt(), name)
    return _viewed(context, call, result)


def argmax(context: Context, call: Call) -> Value:
    """The first place of the largest element along an axis, and argmin."""
    view, axes = _operand(context, call)
    places = _places(context, view, axes, call.op == "argmin", context.emission.name(call))
    return _viewed(context, call, places)


def _places(context: Context, view: View, axes: Axes, is_minimum: bool, name: str) -> View:
    """The first place of the largest or smallest element along an axis, as a float.

    Each element that equals the largest one gets the number of elements from it to the end, the
    others get 0; the first one's number is the largest.
    """
    (axis,) = axes
    inner = view.sample().ndim
    moved = np.moveaxis(view.indices, axis - inner, -1)
    view, axes = replace(view, indices=moved), {inner - 1}
    if is_minimum:
        view = affine(context, view, _numbers(-1), _numbers(0), f"{name}/negative")
    maximum = reduced(context, view, axes, "amax", f"{name}/amax")
    view = centred(context, view, maximum, f"{name}/difference")
    view = write(context, view, Sign(), f"{name}/largest", quantized=True)
    count = view.indices.shape[-1]
    rest = np.arange(count, 0, -1, dtype=np.float32)
    view = affine(context, view, rest / 2, rest / 2, f"{name}/rest")
    maximum = reduced(context, view, axes, "amax", f"{name}/first")
    return affine(context, maximum, _numbers(-1), _numbers(count), name)


def reduced(context: Context, view: View, axes: Axes, op: str, name: str) -> View:
    """A reduction that keeps its axes, of size 1.

    Args:
        context: Receives the nodes.
        view: The tensor.
        axes: Of the tensor without its batch.
        op: mean, sum, amax or amin.
        name: What the node is called.
    """
    if op == "amin":
        view = affine(context, view, _numbers(-1), _numbers(0), f"{name}/negative")
        maximum = reduced(context, view, axes, "amax", f"{name}/amax")
        return affine(context, maximum, _numbers(-1), _numbers(0), name)
    layout = own_layout(view)
    inner = view.sample().ndim
    channels = inner - 1 if layout == "channels_last" else 0
    if inner > 3 and axes - {channels}:
        view = _over_some_pixels(context, view, axes - {channels}, channels, op, name)
        return reduced(context, view, {channels}, op, name) if channels in axes else view
    view = relayout(context.emission, view, layout, name)
    if axes - {channels}:
        last = f"{name}/pixels" if channels in axes else name
        view = _over_pixels(context, view, axes - {channels}, op, layout, last)
    return _over_channels(context, view, channels, op, layout, name) if channels in axes else view


def centred(context: Context, view: View, mean: View, name: str) -> View:
    """A tensor less what a reduction has made of it."""
    mean = affine(context, mean, _numbers(-1), _numbers(0), f"{name}/negative")
    return two_tensors(context, view, mean, AddTensor, name)


def _operand(context: Context, call: Call) -> tuple[View, Axes]:
    view = context.real(context.operand(call["self"]))
    rank, inner = view.indices.ndim, view.sample().ndim
    dims = call["dim"] if isinstance(call["dim"], list) else [call["dim"]]
    if None in dims or not dims:
        raise UnsupportedError("reduces a whole tensor to one number")
    axes = {int(dim) % rank - (rank - inner) for dim in dims}
    if -1 in axes:
        raise UnsupportedError("reduces the batch")
    return view, axes


def _viewed(context: Context, call: Call, view: View) -> Value:
    """The result of a call, which may drop the axes that it reduces."""
    return context.viewed(call, replace(view, indices=view.indices.reshape(call.shape)))


def _kept(view: View, axes: Axes) -> tuple[int, ...]:
    lead = view.indices.ndim - view.sample().ndim
    return tuple(1 if axis - lead in axes else size for axis, size in enumerate(view.indices.shape))


def _over_pixels(
    context: Context, view: View, axes: Axes, op: str, layout: Layout, name: str
) -> View:
    kept = _kept(view, axes)
    hwc = hwc_of(kept[view.indices.ndim - view.sample().ndim :], layout)
    window = Window((view.hwc[0] // hwc[0], view.hwc[1] // hwc[1]))
    operator: Operator = MaxPool2D(window) if op == "amax" else AveragePool2D(window)
    if op == "sum":
        operator = sum_of_windows(view, window)
    value = context.emission.emit(operator, [view.value], hwc, name)
    return plain_view(value, kept, context.batch, layout)


def _over_some_pixels(
    context: Context, view: View, axes: Axes, channels: int, op: str, name: str
) -> View:
    """Of more than two pixel axes: those that stay as rows, the others as columns."""
    lead = view.indices.ndim - view.sample().ndim
    stay = [axis for axis in range(view.sample().ndim) if axis not in {*axes, channels}]
    order = [*range(lead), *(lead + axis for axis in [*stay, *sorted(axes), channels])]
    indices = view.indices.transpose(order)
    front, sizes = indices.shape[: lead + len(stay)], indices.shape[-1:]
    rows = math.prod(front[lead:])
    indices = indices.reshape(*front[:lead], rows, -1, *sizes)
    moved = relayout(context.emission, replace(view, indices=indices), "channels_last", name)
    pooled = _over_pixels(context, moved, {1}, op, "channels_last", name)
    place = lead + sum(axis < channels for axis in stay)
    indices = np.moveaxis(pooled.indices.reshape(*front, *sizes), -1, place)
    return replace(pooled, indices=indices.reshape(_kept(view, axes)))


def _over_channels(
    context: Context, view: View, axis: int, op: str, layout: Layout, name: str
) -> View:
    """A sum by a kernel of ones, others by a pool of the map whose columns are the channels."""
    height, width, channels = view.hwc
    emit, hwc, value = context.emission.emit, (height, width, 1), view.value
    if op == "sum":
        ones = Conv2D(np.ones((1, 1, 1, channels), np.float32), Window((1, 1)))
        value = emit(ones, [value], hwc, name)
    else:
        if width * channels > MAX_GATHERED:
            height, width = height * width, 1
        columns = (height, width * channels, 1)
        value = emit(Reshape(columns), [value], columns, f"{name}/columns")
        window = Window((1, channels), (1, channels))
        pool: Operator = MaxPool2D(window) if op == "amax" else AveragePool2D(window)
        last = name if (height, width, 1) == hwc else f"{name}/pooled"
        value = emit(pool, [value], (height, width, 1), last)
        if last != name:
            value = emit(Reshape(hwc), [value], hwc, name)
    return plain_view(value, _kept(view, {axis}), context.batch, layout)


def _numbers(value: float, channels: int = 1) -> FloatArray:
    return np.full(channels, value, np.float32)


REDUCING: Final = {
    **dict.fromkeys(("mean", "sum", "amax", "amin", "max", "min"), reduction),
    "linalg_vector_norm": norm,
    **dict.fromkeys(("var", "std"), variance),
    **dict.fromkeys(("argmax", "argmin"), argmax),
}
"""Rules by the names of PyTorch's operators."""
