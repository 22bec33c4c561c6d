"""Operators that only move elements, and those whose results follow from shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules import STANDARD
from phonebit.converter.importers.onnx.rules.elementwise import cast
from phonebit.converter.importers.onnx.rules.moving import axis_of, permuted, reshaped, taken
from phonebit.converter.importers.tflite.rules.as_onnx import (
    TO_FRONT,
    activated,
    on_map,
    standard,
)
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError


def _pad(builder: Builder, node: Node) -> Call:
    call, value = node.operand(0), node.input(2)
    amounts = builder.value(node.operand(1), "amounts")
    if amounts.shape != (len(call.shape), 2) or amounts.dtype.kind not in "iu":
        raise UnsupportedError(f"has amounts of shape {amounts.shape} on {call.shape}")
    mode = "constant"
    if node.op == "MIRROR_PAD":
        mode, value = {0: "reflect"}.get(node.get("Mode"), "symmetric"), None
    number = 0.0 if value is None else builder.number(value, "values")
    amounts = amounts[list(TO_FRONT)] if len(call.shape) == 4 else amounts
    options = {"pads": amounts.T.reshape(-1).tolist(), "value": number, "mode": mode}
    if len(call.shape) == 4:
        return on_map(builder, node, "Pad", [call], **options)
    return standard(builder, node, "Pad", [call], **options)


def _reshape(builder: Builder, node: Node) -> Call:
    sizes = node.get("NewShape")
    if node.input(1) is not None:
        sizes = builder.integers(node.operand(1), "sizes")
    return standard(builder, node, "Reshape", [node.operand(0)], shape=sizes, allowzero=1)


def _squeeze(builder: Builder, node: Node) -> Call:
    axes = node.get("SqueezeDims") or None
    return standard(builder, node, "Squeeze", [node.operand(0)], axes=axes)


def _transpose(builder: Builder, node: Node) -> Call:
    order = builder.integers(node.operand(1), "axes")
    return permuted(builder, node.operand(0), order)


def _concat(builder: Builder, node: Node) -> Call:
    rank = len(node.operand(0).shape)
    axis = axis_of(node.get("Axis", 0), rank)
    calls = [node.operand(index) for index in range(len(node.inputs))]
    if rank == 4 and all(len(call.shape) == 4 for call in calls):
        fronts = [permuted(builder, call, TO_FRONT) for call in calls[1:]]
        made = on_map(builder, node, "Concat", [calls[0], *fronts], axis=TO_FRONT.index(axis))
    else:
        made = standard(builder, node, "Concat", calls, axis=axis)
    return activated(builder, node, made)


def _pack(builder: Builder, node: Node) -> Call:
    calls = [node.operand(index) for index in range(len(node.inputs))]
    rank = len(calls[0].shape) + 1
    axis = axis_of(node.get("Axis", 0), rank)
    wide = [reshaped(builder, call, (*call.shape[:axis], 1, *call.shape[axis:])) for call in calls]
    return standard(builder, node, "Concat", wide, axis=axis)


def _split(builder: Builder, node: Node) -> Any:
    """SPLIT reads the axis first, SPLIT_V sizes and then the axis."""
    even = node.op == "SPLIT"
    call, axis = (node.operand(1), node.operand(0)) if even else (node.operand(0), node.operand(2))
    inputs: list[Call | None] = [call] if even else [call, node.operand(1)]
    (number,) = builder.integers(axis, "axes")[:1] or [0]
    split = replace(node, op="Split", version=13, inputs=inputs, attributes={"axis": number})
    return STANDARD["Split"](builder, split)


def _slice(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    starts, sizes = (builder.integers(node.operand(index), "sizes") for index in (1, 2))
    if not len(starts) == len(sizes) == len(call.shape):
        raise UnsupportedError(f"slices {call.shape} from {starts} by {sizes}")
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        end = call.shape[axis] if size == -1 else start + size
        if not 0 <= start <= end <= call.shape[axis]:
            raise UnsupportedError(f"slices {call.shape} from {starts} by {sizes}")
        call = taken(builder, call, range(start, end), axis, "slice")
    return call


def _strided_slice(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    lists = [builder.integers(node.operand(index), "positions") for index in (1, 2, 3)]
    masks = [node.get(name, 0) for name in ("BeginMask", "EndMask", "ShrinkAxisMask")]
    rest = any(node.get(name) for name in ("EllipsisMask", "NewAxisMask", "Offset"))
    lengths = {len(each) for each in lists}
    if rest or len(lengths) != 1 or lengths.pop() > len(call.shape) or 0 in lists[2]:
        raise UnsupportedError(f"slices {call.shape} in a way that is unknown")
    gone = []
    for axis, (begin, end, step) in enumerate(zip(*lists, strict=True)):
        no_begin, no_end, shrink = (mask >> axis & 1 for mask in masks)
        size = call.shape[axis]
        if shrink:
            gone.append(axis)
            positions = range(size)[begin : begin + 1 or None]
        else:
            positions = range(size)[
                slice(None if no_begin else begin, None if no_end else end, step)
            ]
        if not positions:
            raise UnsupportedError(f"takes nothing of {call.shape}")
        call = taken(builder, call, positions, axis, "slice")
    kept = [size for axis, size in enumerate(call.shape) if axis not in gone]
    return reshaped(builder, call, kept)


def _gather(builder: Builder, node: Node) -> Call:
    if node.get("BatchDims"):
        raise UnsupportedError("gathers from each image at other places")
    return standard(builder, node, "Gather", node.inputs, axis=node.get("Axis", 0))


def _shape(builder: Builder, node: Node) -> Call:
    return builder.literal(np.array(node.operand(0).shape, node.get("result").dtype))


def _cast(builder: Builder, node: Node) -> Call:
    return cast(builder, node.operand(0), node.get("result").dtype)


def _blocks(op: str, builder: Builder, node: Node) -> Call:
    return on_map(builder, node, op, [node.operand(0)], blocksize=node.get("BlockSize", 0))


MOVING: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    **dict.fromkeys(("SPLIT", "SPLIT_V"), _split),
    "DEPTH_TO_SPACE": partial(_blocks, "DepthToSpace"),
    "SPACE_TO_DEPTH": partial(_blocks, "SpaceToDepth"),
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "TRANSPOSE": _transpose,
    "CONCATENATION": _concat,
    "PACK": _pack,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
    "SHAPE": _shape,
    "CAST": _cast,
}
