"""Operators that only move elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Array = NDArray[Any]


def reshaped(builder: Builder, call: Call, shape: Sequence[int]) -> Call:
    """The same elements in another shape."""
    shape = tuple(shape)
    if shape == call.shape:
        return call
    if math.prod(shape) != math.prod(call.shape):
        raise UnsupportedError(f"makes {shape} of a tensor of shape {call.shape}")
    arguments = {"self": call, "size": list(shape)}
    return builder.emit("view", arguments, lambda self, size: self.reshape(size), shape)


def permuted(builder: Builder, call: Call, axes: Sequence[int]) -> Call:
    """The axes in another order."""
    axes = list(axes)
    if sorted(axes) != list(range(len(call.shape))):
        raise UnsupportedError(f"orders the axes of {call.shape} as {axes}")
    if axes == sorted(axes):
        return call
    shape = [call.shape[axis] for axis in axes]
    arguments = {"self": call, "dims": axes}
    return builder.emit("permute", arguments, lambda self, dims: self.transpose(dims), shape)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        UnsupportedError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise UnsupportedError(f"works along axis {axis} of {rank}")
    return axis % rank


def _reshape(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    wanted = list(node.get("shape") or [])
    if node.input(1) is not None:
        wanted = builder.integers(node.operand(1), "sizes")
    if not node.get("allowzero", 0):
        copied = enumerate(wanted)
        wanted = [
            call.shape[axis] if size == 0 and axis < len(call.shape) else size
            for axis, size in copied
        ]
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0:
            wanted[wanted.index(-1)] = math.prod(call.shape) // rest
    if any(size < 0 for size in wanted):
        raise UnsupportedError(f"makes {tuple(wanted)} of a tensor of shape {call.shape}")
    return reshaped(builder, call, wanted)


def _flatten(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    axis, rank = int(node.get("axis", 1)), len(call.shape)
    axis = rank if axis == rank else axis_of(axis, rank)
    return reshaped(builder, call, (math.prod(call.shape[:axis]), math.prod(call.shape[axis:])))


def _axes(builder: Builder, node: Node) -> list[int] | None:
    """Axes, an attribute before opset 13."""
    given = node.input(1)
    return node.get("axes") if given is None else builder.integers(given, "axes")


def _squeeze(builder: Builder, node: Node) -> Call:
    call, axes = node.operand(0), _axes(builder, node)
    rank = len(call.shape)
    if axes is None:
        axes = [axis for axis, size in enumerate(call.shape) if size == 1]
    gone = {axis_of(axis, rank) for axis in axes}
    shape = [size for axis, size in enumerate(call.shape) if axis not in gone]
    return reshaped(builder, call, shape)


def _unsqueeze(builder: Builder, node: Node) -> Call:
    call, axes = node.operand(0), _axes(builder, node) or []
    rank = len(call.shape) + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) != len(axes) or rank > 8:
        raise UnsupportedError(f"adds axes {axes} to a tensor of shape {call.shape}")
    old = iter(call.shape)
    return reshaped(builder, call, [1 if axis in new else next(old) for axis in range(rank)])


def _transpose(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    return permuted(builder, call, node.get("perm") or range(len(call.shape))[::-1])


def _slice(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    lists = [
        node.get(name) if node.input(index) is None else builder.integers(node.operand(index), name)
        for index, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps"))
    ]
    starts, ends = lists[0] or [], lists[1] or []
    axes = lists[2] if lists[2] is not None else list(range(len(starts)))
    steps = lists[3] if lists[3] is not None else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise UnsupportedError(f"has starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = axis_of(axis, len(call.shape))
        call = taken(builder, call, _range_of(start, end, step, call.shape[axis]), axis, "slice")
    return call


def _range_of(start: int, end: int, step: int, size: int) -> range:
    """The positions of a slice along an axis."""
    start, end = (n + size if n < 0 else n for n in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, -1), size - 1), min(max(end, -1), size - 1), step)


def taken(
    builder: Builder, call: Call, positions: list[int] | range, axis: int, op: str = "index_select"
) -> Call:
    """The elements at some positions along an axis."""
    whole = range(call.shape[axis])
    if positions == (whole if isinstance(positions, range) else list(whole)):
        return call
    shape = [*call.shape[:axis], len(positions), *call.shape[axis + 1 :]]
    take = (
        partial(_between, positions)
        if isinstance(positions, range)
        else partial(_take, np.array(positions, np.int64))
    )
    return builder.emit(op, {"self": call, "dim": axis}, take, shape)


def _take(indices: Array, /, self: Array, dim: int) -> Array:
    return np.take(self, indices, axis=dim)


def _between(positions: range, /, self: Array, dim: int) -> Array:
    """As ``_take``, without a list of all positions."""
    stop = positions.stop if positions.stop >= 0 else None
    part = slice(positions.start, stop, positions.step) if len(positions) else slice(0)
    return self[(slice(None),) * dim + (part,)]


def _gather(builder: Builder, node: Node) -> Call:
    call, chosen = node.operand(0), node.operand(1)
    axis = axis_of(int(node.get("axis", 0)), len(call.shape))
    if call.constant and not chosen.constant and axis == 0 and len(call.shape) == 2:
        shape = (*chosen.shape, call.shape[1])
        return builder.emit(
            "embedding", {"weight": call, "indices": chosen}, None, shape, call.dtype
        )
    indices = builder.value(chosen, "indices")
    size = call.shape[axis]
    if indices.dtype.kind not in "iu" or (np.abs(indices + 0.5) > size).any():
        raise UnsupportedError(f"has indices outside of an axis of {size} elements")
    shape = (*call.shape[:axis], *indices.shape, *call.shape[axis + 1 :])
    arguments = {"self": call, "dim": axis}
    return builder.emit("index_select", arguments, partial(_take, indices), shape)


def _gather_points(builder: Builder, node: Node) -> Call:
    """GatherND: indices into the first axes, together."""
    call, points = node.operand(0), builder.value(node.operand(1), "indices")
    count = points.shape[-1] if points.ndim else 0
    if node.get("batch_dims", 0) or not 1 <= count <= len(call.shape):
        raise UnsupportedError(f"has indices {points.shape} into a tensor of shape {call.shape}")
    if points.dtype.kind not in "iu" or (np.abs(points + 0.5) > call.shape[:count]).any():
        raise UnsupportedError(f"has indices outside of a tensor of shape {call.shape}")
    shape = (*points.shape[:-1], *call.shape[count:])
    return builder.emit("index", {"self": call}, partial(_take_points, points), shape)


def _take_points(points: Array, /, self: Array) -> Array:
    taken: Array = self[tuple(np.moveaxis(points, -1, 0))]
    return taken


def _concat(builder: Builder, node: Node) -> Call:
    calls = [node.operand(index) for index in range(len(node.inputs))]
    rank = len(calls[0].shape)
    axis = axis_of(int(node.get("axis", 0)), rank)
    shapes = {tuple(size for a, size in enumerate(call.shape) if a != axis) for call in calls}
    if len(shapes) != 1 or {len(call.shape) for call in calls} != {rank}:
        raise UnsupportedError(f"joins tensors of shapes {[call.shape for call in calls]}")
    shape = list(calls[0].shape)
    shape[axis] = sum(call.shape[axis] for call in calls)
    if len(calls) == 1:
        return calls[0]
    arguments = {"tensors": calls, "dim": axis}
    return builder.emit("cat", arguments, lambda tensors, dim: np.concatenate(tensors, dim), shape)


def _split(builder: Builder, node: Node) -> list[Call]:
    call = node.operand(0)
    axis = axis_of(int(node.get("axis", 0)), len(call.shape))
    size, count = call.shape[axis], len(node.outputs)
    sizes = node.get("split")
    if node.input(1) is not None:
        sizes = builder.integers(node.operand(1), "sizes")
    if sizes is None:
        part = -(-size // count)
        sizes = [min(part, size - part * index) for index in range(count)]
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        raise UnsupportedError(f"splits {size} elements into {sizes}")
    ends = np.cumsum(sizes).tolist()
    return [
        taken(builder, call, range(end - part, end), axis, "slice")
        for part, end in zip(sizes, ends, strict=True)
    ]


def _expand(builder: Builder, node: Node) -> Call:
    call, wanted = node.operand(0), builder.integers(node.operand(1), "sizes")
    try:
        shape = np.broadcast_shapes(call.shape, tuple(wanted))
    except ValueError as error:
        raise UnsupportedError(f"makes {wanted} of a tensor of shape {call.shape}") from error
    if shape == call.shape:
        return call
    arguments = {"self": call, "size": list(shape)}
    return builder.emit("expand", arguments, lambda self, size: np.broadcast_to(self, size), shape)


def _tile(builder: Builder, node: Node) -> Call:
    call, repeats = node.operand(0), builder.integers(node.operand(1), "repeats")
    if len(repeats) != len(call.shape) or min(repeats, default=1) < 1:
        raise UnsupportedError(f"repeats a tensor of shape {call.shape} {repeats} times")
    shape = [size * count for size, count in zip(call.shape, repeats, strict=True)]
    arguments = {"self": call, "repeats": repeats}
    return builder.emit("tile", arguments, lambda self, repeats: np.tile(self, repeats), shape)


def _depth_to_space(builder: Builder, node: Node) -> Call:
    call, block = node.operand(0), int(node.get("blocksize", 0))
    if len(call.shape) != 4 or block < 1 or call.shape[1] % (block * block):
        raise UnsupportedError(f"has blocks of {block} on a tensor of shape {call.shape}")
    n, c, h, w = call.shape
    first = node.get("mode", "DCR") == "CRD"
    shape = (n, c // block**2, h * block, w * block)
    arguments = {"self": call}
    return builder.emit("pixel_shuffle", arguments, partial(_to_space, block, first), shape)


def _to_space(block: int, channels_first: bool, /, self: Array) -> Array:
    n, c, h, w = self.shape
    c //= block * block
    if channels_first:
        parts = self.reshape(n, c, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        parts = self.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c, h * block, w * block)


def _space_to_depth(builder: Builder, node: Node) -> Call:
    call, block = node.operand(0), int(node.get("blocksize", 0))
    if len(call.shape) != 4 or block < 1 or call.shape[2] % block or call.shape[3] % block:
        raise UnsupportedError(f"has blocks of {block} on a tensor of shape {call.shape}")
    n, c, h, w = call.shape
    shape = (n, c * block**2, h // block, w // block)
    return builder.emit("pixel_unshuffle", {"self": call}, partial(_to_depth, block), shape)


def _to_depth(block: int, /, self: Array) -> Array:
    n, c, h, w = self.shape
    parts = self.reshape(n, c, h // block, block, w // block, block)
    return parts.transpose(0, 3, 5, 1, 2, 4).reshape(n, -1, h // block, w // block)


MOVING: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Slice": _slice,
    "Gather": _gather,
    "GatherND": _gather_points,
    "Concat": _concat,
    "Split": _split,
    "Expand": _expand,
    "Tile": _tile,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
