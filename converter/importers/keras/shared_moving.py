"""Recorded functions that only move elements, in ONNX's terms: see ``shared``."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

from phonebit.converter.importers.keras.graph import UnsupportedError, number
from phonebit.converter.importers.keras.shared import Layer
from phonebit.converter.importers.torch.calls import Call

WHOLE: Final = {"start": None, "stop": None, "step": None}
REVERSED: Final = {"starts": [-1], "ends": [-(1 << 30)], "steps": [-1]}
"""A slice of a whole axis, last element first."""
MODES: Final = {"CONSTANT": "constant", "REFLECT": "reflect", "EDGE": "edge"}
PLACES: Final = {
    "bilinear": {"mode": "linear"},
    "nearest": {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
}


def tensor_of(layer: Layer, *names: str) -> Call:
    """The argument of one of these names, which must be a tensor."""
    call = layer.argument(*names)
    if not isinstance(call, Call):
        raise UnsupportedError("called without a tensor")
    return call


def axes_of(layer: Layer, call: Call, default: Any = None) -> list[int]:
    """The argument ``axis``; None stands for all axes, the batch too, which must stay."""
    axis = layer.argument("axis", "axes", default=default)
    if axis is None:
        raise UnsupportedError("works along all axes, the batch among them")
    return layer.axes(axis, len(call.shape))


def get_item(layer: Layer) -> Call:
    """x[...]: slices, single elements and new axes."""
    call = tensor_of(layer, "x")
    first, *entries = _entries(layer.argument("slice_spec", "key"), len(call.shape))
    if first != WHOLE:
        raise UnsupportedError("slices or indexes the batch")
    shape: list[int] = []
    axis = 0
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        axis += 1
        extent = call.shape[axis]
        if isinstance(entry, dict) and set(entry) == set(WHOLE):
            part = range(extent)[slice(entry["start"], entry["stop"], entry["step"])]
            shape.append(len(part))
        elif isinstance(entry, int) and not isinstance(entry, bool) and -extent <= entry < extent:
            part = range(extent)[entry % extent :][:1]
        else:
            raise UnsupportedError(f"the index {entry!r} is no constant slice or element")
        if not part:
            raise UnsupportedError(f"takes nothing of {extent} elements")
        call = layer.onnx("Gather", call, list(part), axis=axis)
    return layer.onnx("Reshape", call, shape=[1, *shape] if shape else [1, 1])


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


def begin_and_size(layer: Layer) -> Call:
    """tf.slice."""
    call = tensor_of(layer, "x")
    begin, size = layer.argument("begin"), layer.argument("size")
    good = isinstance(begin, list) and isinstance(size, list)
    if not good or not len(begin) == len(size) == len(call.shape) or (begin[0], size[0]) != (0, -1):
        raise UnsupportedError(f"slices {call.shape} from {begin} by {size}")
    ends = [
        length if count == -1 else start + count
        for start, count, length in zip(begin, size, call.shape, strict=True)
    ]
    return layer.onnx("Slice", call, starts=begin, ends=ends)


def transpose(layer: Layer) -> Call:
    """tf.transpose and keras.ops.transpose."""
    call, order = tensor_of(layer, "x"), layer.argument("perm", "axes")
    if not isinstance(order, list) or order[:1] != [0]:
        raise UnsupportedError(f"orders the axes as {order}; the batch must stay the first")
    return layer.onnx("Transpose", call, perm=order)


def swap_axes(layer: Layer) -> Call:
    """keras.ops.swapaxes."""
    call = tensor_of(layer, "x")
    pair = [layer.argument("axis1"), layer.argument("axis2")]
    one, other = layer.axes(pair, len(call.shape))
    order = list(range(len(call.shape)))
    order[one], order[other] = other, one
    return layer.onnx("Transpose", call, perm=order)


def move_axis(layer: Layer) -> Call:
    """keras.ops.moveaxis of one axis."""
    call = tensor_of(layer, "x")
    pair = [layer.argument("source"), layer.argument("destination")]
    source, destination = layer.axes(pair, len(call.shape))
    order = [axis for axis in range(len(call.shape)) if axis != source]
    order.insert(destination, source)
    return layer.onnx("Transpose", call, perm=order)


def split(layer: Layer) -> list[Call]:
    """tf.split and keras.ops.split; the results are called output0, output1, ..."""
    call = tensor_of(layer, "x")
    (axis,) = axes_of(layer, call, 0)
    extent = call.shape[axis]
    parts = layer.argument("num_or_size_splits", "indices_or_sections")
    if isinstance(parts, int) and parts > 0 and extent % parts == 0:
        sizes = [extent // parts] * parts
    elif isinstance(parts, list) and "num_or_size_splits" in layer.config:
        sizes = parts
    elif isinstance(parts, list):
        sizes = [end - start for start, end in itertools.pairwise([0, *parts, extent])]
    else:
        sizes = []
    if not sizes or sum(sizes) != extent or min(sizes) < 1:
        raise UnsupportedError(f"splits {extent} elements into {parts!r}")
    outputs = [f"output{i}" for i in range(len(sizes))]
    return layer.results("Split", call, sizes, outputs=outputs, axis=axis)


def unstack(layer: Layer) -> list[Call]:
    """tf.unstack: the elements of an axis."""
    call = tensor_of(layer, "x")
    (axis,) = axes_of(layer, call, 0)
    rest = [*call.shape[:axis], *call.shape[axis + 1 :]]
    return [
        layer.onnx("Reshape", layer.onnx("Gather", call, [place], axis=axis), shape=rest)
        for place in range(call.shape[axis])
    ]


def gather(layer: Layer) -> Call:
    """tf.gather and keras.ops.take, by constant indices."""
    call, indices = tensor_of(layer, "x"), layer.argument("indices")
    (axis,) = axes_of(layer, call, 0)
    extent = call.shape[axis]
    good = isinstance(indices, list) and all(
        isinstance(i, int) and 0 <= i < extent for i in indices
    )
    if not good or layer.argument("batch_dims"):
        raise UnsupportedError(f"indices={indices!r}; expected a list of places among {extent}")
    return layer.onnx("Gather", call, indices, axis=axis)


def stack(layer: Layer) -> Call:
    """tf.stack: tensors side by side along a new axis."""
    calls = layer.argument("values")
    if not isinstance(calls, list) or not all(isinstance(call, Call) for call in calls):
        raise UnsupportedError("stacks constants")
    (axis,) = layer.axes(layer.argument("axis", default=0), len(calls[0].shape) + 1)
    wide = [layer.onnx("Unsqueeze", call, axes=[axis]) for call in calls]
    return layer.onnx("Concat", *wide, axis=axis)


def tile(layer: Layer) -> Call:
    """tf.tile: an axis several times over."""
    call, counts = tensor_of(layer, "x"), layer.argument("multiples", "repeats")
    if not isinstance(counts, list) or len(counts) != len(call.shape) or counts[0] != 1:
        raise UnsupportedError(f"repeats {counts} of {call.shape}")
    return layer.onnx("Tile", call, counts)


def repeat(layer: Layer) -> Call:
    """tf.repeat: each element of an axis several times."""
    call, count = tensor_of(layer, "x"), layer.argument("repeats")
    (axis,) = axes_of(layer, call)
    if not isinstance(count, int) or not 1 <= count < 1 << 16:
        raise UnsupportedError(f"repeats={count!r}; expected one number")
    places = [place for place in range(call.shape[axis]) for _ in range(count)]
    return layer.onnx("Gather", call, places, axis=axis)


def reverse(layer: Layer) -> Call:
    """tf.reverse and keras.ops.flip."""
    call = tensor_of(layer, "x")
    for axis in axes_of(layer, call):
        call = layer.onnx("Slice", call, axes=[axis], **REVERSED)
    return call


def pad(layer: Layer) -> Call:
    """tf.pad and keras.ops.pad."""
    call, pairs = tensor_of(layer, "x"), layer.argument("paddings", "pad_width")
    mode = str(layer.argument("mode", default="CONSTANT")).upper()
    good = isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, int) for n in pair)
        for pair in pairs
    )
    if not good or len(pairs) != len(call.shape) or pairs[0] != [0, 0]:
        raise UnsupportedError(f"paddings={pairs!r}; expected a pair for each axis but the batch")
    if mode not in MODES:
        raise UnsupportedError(f"mode={mode!r}; expected one of {', '.join(MODES)}")
    value = number(layer.argument("constant_values") or 0, "constant_values")
    *around, channels = pairs[1:]
    before, after = ([0, channels[side], *(pair[side] for pair in around)] for side in (0, 1))
    options = {"pads": [*before, *after], "value": value, "mode": MODES[mode]}
    return layer.back(layer.onnx("Pad", layer.front(call), **options))


def blocks(op: str, layer: Layer) -> Call:
    """tf.nn.depth_to_space and space_to_depth."""
    call = tensor_of(layer, "x")
    if layer.argument("data_format", default="NHWC") != "NHWC":
        raise UnsupportedError(f"data_format={layer.argument('data_format')!r}")
    made = layer.onnx(op, layer.front(call), blocksize=layer.argument("block_size"))
    return layer.back(made)


def resize(layer: Layer) -> Call:
    """tf.image.resize and keras.ops.image.resize."""
    call, size = tensor_of(layer, "x"), layer.argument("size")
    method = layer.argument("method", "interpolation", default="bilinear")
    flags = ("antialias", "preserve_aspect_ratio", "crop_to_aspect_ratio", "pad_to_aspect_ratio")
    more = [flag for flag in flags if layer.argument(flag)]
    if method not in PLACES or more or not isinstance(size, list) or len(call.shape) != 4:
        raise UnsupportedError(f"resizes {call.shape} to {size!r} by {method!r} {more or ''}")
    front = layer.front(call)
    sizes = [*front.shape[:2], *size]
    return layer.back(layer.onnx("Resize", front, None, None, sizes, **PLACES[method]))


def flat(layer: Layer) -> Call:
    """All elements of an image in one axis."""
    call = tensor_of(layer, "x")
    return layer.onnx("Reshape", call, shape=[1, math.prod(call.shape)])
