"""Functions that pick, pad, drop or average parts of a tensor: slices, splits, pads, means."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    needs_rank,
    number,
    tensors,
)
from phonebit.converter.ir import Operator, Window
from phonebit.converter.ops import AveragePool2D, MaxPool2D, Pad, Reshape, SelectChannels
from phonebit.format.records import DataType

Arguments = dict[str, Any]
WHOLE: Final = {"start": None, "stop": None, "step": None}


def real_tensor(ctx: LayerContext, value: Any, inner: str = "cast") -> Tensor:
    """The only tensor of an argument, as real numbers or bits."""
    found = tensors(value)
    if len(found) != 1:
        raise UnsupportedError(f"called with {len(found)} tensors, expected one")
    return ctx.real(found[0], inner)


def channels_of(ctx: LayerContext, x: Tensor, indices: Any, inner: str = "") -> Tensor:
    """Emits a selection of channels; -1 stands for a channel of zeros."""
    op = SelectChannels(np.asarray(indices, np.int32))
    if not op.indices.size:
        raise UnsupportedError("no channels are left")
    return ctx.emit(op, [x], (*x.shape[:-1], op.indices.size), suffix=inner, inner=inner)


def get_item(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """x[...]: slices of channels, strides over rows and columns, single elements, new axes."""
    x = real_tensor(ctx, arguments.get("x"))
    key = arguments.get("slice_spec", arguments.get("key"))
    ranges, shape = _ranges(x, _entries(key, len(x.shape) + 1))
    *space, chosen = [range(1)] * (3 - len(x.shape)) + ranges
    steps: list[tuple[str, Operator, tuple[int, ...], DataType]] = []
    extents = tuple(len(part) for part in ranges)
    if extents[:-1] != x.shape[:-1]:
        strides = [_stride(part, extent) for part, extent in zip(space, x.hwc, strict=False)]
        window = Window((1, 1), (strides[0], strides[1]))
        steps.append(("rows", MaxPool2D(window), (*extents[:-1], x.channels), x.dtype))
    if chosen != range(x.channels):
        indices = np.array(chosen, np.int32)
        steps.append(("channels", SelectChannels(indices), extents, DataType.F32))
    if tuple(shape) != extents:
        dtype = steps[-1][3] if steps else x.dtype
        result = Tensor(x.value, tuple(shape))
        steps.append(("shape", Reshape(result.hwc), result.shape, dtype))
    for position, (name, op, extent, dtype) in enumerate(steps, start=1):
        inner = "" if position == len(steps) else name
        x = ctx.emit(op, [x], extent, suffix=inner, inner=inner, dtype=dtype)
    return x


def _entries(key: Any, rank: int) -> list[Any]:
    """One entry an axis (and None for each new one); an ellipsis becomes whole axes."""
    entries: list[Any] = []
    for entry in key if isinstance(key, list) else [key]:
        kind = entry.get("class_name") if isinstance(entry, dict) else None
        if kind == "__slice__":
            entry = entry.get("config")
        entries.append(Ellipsis if kind == "__ellipsis__" else entry)
    if Ellipsis not in entries:
        entries.append(Ellipsis)
    at = entries.index(Ellipsis)
    missing = rank - sum(entry is not None and entry is not Ellipsis for entry in entries)
    if missing < 0 or entries.count(Ellipsis) > 1:
        raise UnsupportedError(f"{len(entries) - 1} indices of a tensor with {rank} axes")
    return [*entries[:at], *[WHOLE] * missing, *entries[at + 1 :]]


def _ranges(x: Tensor, entries: list[Any]) -> tuple[list[range], list[int]]:
    """The indices that are kept of each axis of ``x``, and the shape of the result."""
    if entries[0] != WHOLE:
        raise UnsupportedError("slices or indexes the batch")
    extents = list(x.shape)
    ranges: list[range] = []
    shape: list[int] = []
    for entry in entries[1:]:
        if entry is None:
            shape.append(1)
            continue
        extent = extents[len(ranges)]
        if isinstance(entry, int) and not isinstance(entry, bool) and -extent <= entry < extent:
            ranges.append(range(entry % extent, entry % extent + 1))
            continue
        if not isinstance(entry, dict) or set(entry) != set(WHOLE):
            raise UnsupportedError(f"the index {entry!r} is no constant slice or element")
        part = slice(entry["start"], entry["stop"], entry["step"])
        ranges.append(range(extent)[part])
        shape.append(len(ranges[-1]))
    if not 1 <= len(shape) <= 3 or min(shape) < 1:
        raise UnsupportedError(f"its result has shape {tuple(shape)}; 1 to 3 axes are supported")
    return ranges, shape


def _stride(part: range, extent: int) -> int:
    """The stride of a 1x1 window that picks ``part`` of ``extent`` rows or columns."""
    stride = extent if len(part) == 1 else part.step
    if part.start != 0 or stride < 1 or (extent - 1) // stride + 1 != len(part):
        raise UnsupportedError(
            f"takes rows or columns {part.start} to {part[-1]} of {extent}; only strides over all "
            "of them, from the first, are supported"
        )
    return stride


def split(ctx: LayerContext, arguments: Arguments) -> list[Tensor]:
    """tf.split and keras.ops.split of the channels; the results are called output0, output1, ..."""
    x = real_tensor(ctx, arguments.get("x"))
    _needs_last_axis(x, arguments.get("axis", 0))
    parts = arguments.get("num_or_size_splits", arguments.get("indices_or_sections"))
    sizes = parts if "num_or_size_splits" in arguments else None
    if isinstance(parts, int) and parts > 0 and x.channels % parts == 0:
        sizes = [x.channels // parts] * parts
    elif isinstance(parts, list) and sizes is None:
        ends = [0, *parts, x.channels]
        sizes = [end - start for start, end in itertools.pairwise(ends)]
    if not isinstance(sizes, list) or sum(sizes) != x.channels or min(sizes) < 1:
        raise UnsupportedError(f"splits {x.channels} channels into {parts!r}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [
        channels_of(ctx, x, range(start, start + size), f"output{i}")
        for i, (start, size) in enumerate(zip(starts, sizes, strict=True))
    ]


def _needs_last_axis(x: Tensor, axis: object) -> None:
    if axis not in (-1, len(x.shape)):
        raise UnsupportedError(f"axis={axis}; only the last axis (-1) is supported")


def gather(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """tf.gather and keras.ops.take of channels, by constant indices."""
    x = real_tensor(ctx, arguments.get("x"))
    _needs_last_axis(x, arguments.get("axis"))
    indices = arguments.get("indices")
    good = isinstance(indices, list) and all(
        isinstance(i, int) and 0 <= i < x.channels for i in indices
    )
    if not good:
        raise UnsupportedError(f"indices={indices!r}; a list of channels is expected")
    return channels_of(ctx, x, indices)


def pad(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """tf.pad with constants: around the map, and channels of zeros before and behind."""
    x = real_tensor(ctx, arguments.get("x"))
    mode, value = arguments.get("mode", "CONSTANT"), arguments.get("constant_values") or 0
    if str(mode).upper() != "CONSTANT":
        raise UnsupportedError(f"mode={mode!r}; only constant padding is supported")
    pads: Any = arguments.get("paddings", arguments.get("pad_width"))
    good = isinstance(pads, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(_is_count(n) for n in pair)
        for pair in pads
    )
    if not good or len(pads) != len(x.shape) + 1 or pads[0] != [0, 0]:
        raise UnsupportedError(f"paddings={pads!r}; a pair for each axis but the batch is expected")
    before, behind = pads[-1]
    rows, columns = [[0, 0], [0, 0], *pads[1:-1]][-2:]
    around = (rows[0], columns[0], rows[1], columns[1])
    if any(around):
        needs_rank(x, 3)
        height, width, channels = x.hwc
        shape = (height + sum(rows), width + sum(columns), channels)
        inner = "map" if before or behind else ""
        op = Pad(around, number(value, "constant_values"))
        x = ctx.emit(op, [x], shape, suffix=inner, inner=inner)
    if before or behind:
        if value != 0:
            raise UnsupportedError(f"pads the channels with {value!r}, can pad them with 0")
        x = channels_of(ctx, x, [-1] * before + list(range(x.channels)) + [-1] * behind)
    return x


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 16


def mean(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """The mean over rows and columns: an average pool as large as the map."""
    return _reduced(ctx, arguments, AveragePool2D)


def maximum_of_map(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """The maximum over rows and columns: a max pool as large as the map."""
    return _reduced(ctx, arguments, MaxPool2D)


def _reduced(
    ctx: LayerContext, arguments: Arguments, kind: type[AveragePool2D] | type[MaxPool2D]
) -> Tensor:
    x = real_tensor(ctx, arguments.get("x"))
    needs_rank(x, 3)
    axis = arguments.get("axis")
    axes = sorted(a % 4 for a in axis) if isinstance(axis, list) else axis
    if axes != [1, 2]:
        raise UnsupportedError(f"reduces axis {axis!r}; only rows and columns, [1, 2]")
    shape = (1, 1, x.channels) if arguments.get("keepdims") else (x.channels,)
    dtype = x.dtype if kind is MaxPool2D else DataType.F32
    return ctx.emit(kind(Window((x.shape[0], x.shape[1]))), [x], shape, dtype=dtype)


def reshape(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """tf.reshape: the batch is the first axis and must stay, written as -1."""
    x = real_tensor(ctx, arguments.get("x"))
    shape = arguments.get("shape", arguments.get("newshape"))
    if not isinstance(shape, list) or not all(isinstance(n, int) for n in shape):
        raise UnsupportedError(f"reshapes to {shape!r}; a list of integers is expected")
    return _reshaped(ctx, x, shape[1:])


def expand_dims(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """A new axis of one, behind the batch."""
    x, axis = real_tensor(ctx, arguments.get("x")), arguments.get("axis")
    rank = len(x.shape) + 2
    if not isinstance(axis, int) or not -rank <= axis < rank or axis % rank == 0:
        raise UnsupportedError(f"axis={axis!r}")
    shape = list(x.shape)
    shape.insert(axis % rank - 1, 1)
    return _reshaped(ctx, x, shape)


def squeeze(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """Without the given axes, which have one element."""
    x = real_tensor(ctx, arguments.get("x"))
    axis: Any = arguments.get("axis")
    rank = len(x.shape) + 1
    axes = {a % rank for a in (axis if isinstance(axis, list) else [axis])}
    if 0 in axes or any(x.shape[a - 1] != 1 for a in axes):
        raise UnsupportedError(f"squeezes axis {axis!r} of {('batch', *x.shape)}")
    return _reshaped(ctx, x, [n for a, n in enumerate(x.shape, start=1) if a not in axes])


def _reshaped(ctx: LayerContext, x: Tensor, shape: list[int]) -> Tensor:
    fits = 1 <= len(shape) <= 3 and min(shape) > 0 and math.prod(shape) == math.prod(x.shape)
    if not fits:
        raise UnsupportedError(
            f"reshapes {('batch', *x.shape)} to {('batch', *shape)}; the first axis must stay the "
            "batch, and 1 to 3 others follow it"
        )
    result = Tensor(x.value, tuple(shape))
    return ctx.emit(Reshape(result.hwc), [x], result.shape, dtype=x.dtype)
