"""Pools, reductions over axes and padding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary
from phonebit.converter.importers.onnx.rules.layers import as_map_pads
from phonebit.converter.importers.onnx.rules.windows import output_size, pads_of, window_of
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Array = NDArray[Any]
MODES: Final = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


def pool(builder: Builder, node: Node) -> Any:
    """MaxPool and AveragePool."""
    call = node.operand(0)
    kernel, strides, dilation = window_of(node)
    size, is_average = call.shape[2:], node.op == "AveragePool"
    pads = pads_of(node, size, kernel, strides, dilation)
    ceil = bool(node.get("ceil_mode", 0))
    result = output_size(size, kernel, strides, dilation, pads, ceil)
    if is_average and node.get("count_include_pad", 0) and any(pads):
        axes = len(kernel)
        amounts = [n for axis in reversed(range(axes)) for n in (pads[axis], pads[axis + axes])]
        call = padded(builder, call, amounts, "constant", 0.0)
        size, pads = call.shape[2:], (0,) * len(pads)
    ends = [  # what the last windows reach beyond the map, which is less than the pads may be
        (count - 1) * stride + (taps - 1) * step + 1 - length - before
        for count, stride, taps, step, length, before in zip(
            result, strides, kernel, dilation, size, pads, strict=False
        )
    ]
    pads = (*pads[: len(kernel)], *(max(0, end) for end in ends))
    arguments = {
        "self": call,
        "kernel_size": list(kernel),
        "stride": list(strides),
        "padding": [0] * len(kernel),
        "pads": as_map_pads(pads),
        "dilation": list(dilation),
        "count_include_pad": False,
    }
    op = f"{'avg' if is_average else 'max'}_pool{len(kernel)}d"
    made = builder.emit(op, arguments, None, (*call.shape[:2], *result))
    return [made, None]


def reduction(builder: Builder, node: Node) -> Call:
    """ReduceMean and others of its kind."""
    call, given = node.operand(0), node.input(1)
    axes = node.get("axes") if given is None else builder.integers(given, "axes")
    if not axes:
        if node.get("noop_with_empty_axes", 0):
            return call
        axes = list(range(len(call.shape)))
    return reduced(builder, call, REDUCTIONS[node.op], axes, bool(node.get("keepdims", 1)))


def reduced(builder: Builder, call: Call, op: str, axes: list[int], keep: bool) -> Call:
    """A mean, sum or largest value over axes."""
    rank = len(call.shape)
    if not all(-rank <= axis < rank for axis in axes):
        raise UnsupportedError(f"reduces axes {axes} of a tensor of shape {call.shape}")
    dims = sorted({axis % rank for axis in axes})
    kept = [1 if axis in dims else size for axis, size in enumerate(call.shape)]
    shape = kept if keep else [size for axis, size in enumerate(kept) if axis not in dims]
    if op == "squares":
        call, op = binary(builder, "mul", call, call), "sum"
    arguments = {"self": call, "dim": dims, "keepdim": keep, "ord": ORDERS.get(op)}
    aten = "linalg_vector_norm" if op in ORDERS else op
    dtype = "int64" if op == "argmax" else None
    return builder.emit(aten, arguments, partial(_reduce, op), shape, dtype)


def best(builder: Builder, node: Node) -> Call:
    """ArgMax; as an output, its operand stands for it."""
    if node.get("select_last_index", 0):
        raise UnsupportedError("chooses the last of equal elements")
    axes, keep = [int(node.get("axis", 0))], bool(node.get("keepdims", 1))
    return reduced(builder, node.operand(0), "argmax", axes, keep)


def best_few(builder: Builder, node: Node) -> list[Call | None]:
    """TopK; as an output, its operand stands for its indices."""
    call = node.operand(0)
    return [None, builder.emit("topk", {"self": call}, None, call.shape, "int64")]


def _reduce(op: str, /, self: Array, dim: list[int], keepdim: bool, **_: Any) -> Array:
    if op == "argmax":
        return np.asarray(np.argmax(self, axis=dim[0], keepdims=keepdim))
    function = FUNCTIONS[op]
    return np.asarray(function(self, axis=tuple(dim), keepdims=keepdim)).astype(self.dtype)


def whole_map(builder: Builder, node: Node) -> Call:
    """GlobalAveragePool and GlobalMaxPool."""
    call = node.operand(0)
    axes = list(range(2, len(call.shape)))
    if not axes:
        raise UnsupportedError(f"pools a tensor of shape {call.shape}")
    op = "mean" if node.op == "GlobalAveragePool" else "amax"
    return reduced(builder, call, op, axes, True)


def pad(builder: Builder, node: Node) -> Call:
    """Pad; its amounts are an attribute before opset 11."""
    call = node.operand(0)
    given, value, axes = node.input(1), node.input(2), node.input(3)
    amounts = list(node.get("pads") or []) if given is None else builder.integers(given, "pads")
    number = float(node.get("value", 0.0))
    if value is not None:
        number = builder.number(value, "values")
    rank = len(call.shape)
    chosen = list(range(rank)) if axes is None else builder.integers(axes, "axes")
    fits = all(-rank <= axis < rank for axis in chosen) and len(amounts) == 2 * len(chosen)
    mode = MODES.get(node.get("mode", "constant"))
    if not fits or mode is None or any(abs(n) > 1 << 20 for n in amounts):
        raise UnsupportedError(
            f"has pads {amounts} in mode {node.get('mode', 'constant')!r} on {call.shape}"
        )
    pairs = {
        axis % rank: (amounts[index], amounts[index + len(chosen)])
        for index, axis in enumerate(chosen)
    }
    ordered = [n for axis in reversed(range(rank)) for n in pairs.get(axis, (0, 0))]
    while len(ordered) > 2 and ordered[-2:] == [0, 0]:
        ordered = ordered[:-2]
    return padded(builder, call, ordered, mode, number) if any(ordered) else call


def padded(builder: Builder, call: Call, amounts: list[int], mode: str, number: float) -> Call:
    """A tensor with more elements around it: pairs of amounts, the last axis first."""
    rank = len(call.shape)
    if len(amounts) > 2 * rank:
        raise UnsupportedError(f"pads {len(amounts) // 2} axes of {call.shape}")
    shape = list(call.shape)
    for index in range(len(amounts) // 2):
        shape[rank - 1 - index] += amounts[2 * index] + amounts[2 * index + 1]
    arguments = {"self": call, "pad": amounts, "mode": mode, "value": number}
    return builder.emit("constant_pad_nd", arguments, _pad, shape)


def _pad(self: Array, pad: list[int], mode: str, value: Any) -> Array:
    """Negative amounts cut off."""
    widths = [(0, 0)] * self.ndim
    for index in range(len(pad) // 2):
        widths[self.ndim - 1 - index] = (pad[2 * index], pad[2 * index + 1])
    cut = tuple(
        slice(max(0, -before), size - max(0, -after))
        for (before, after), size in zip(widths, self.shape, strict=True)
    )
    added = [(max(0, before), max(0, after)) for before, after in widths]
    if mode == "constant":
        return np.pad(self[cut], added, constant_values=value or 0)
    return np.pad(self[cut], added, mode="reflect" if mode == "reflect" else "edge")


def _magnitudes(self: Array, **options: Any) -> Array:
    return np.asarray(np.sum(np.abs(self), **options))


def _length(self: Array, **options: Any) -> Array:
    return np.asarray(np.sqrt(np.sum(np.square(self), **options)))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "mean": np.mean,
    "sum": np.sum,
    "amax": np.max,
    "amin": np.min,
    "prod": np.prod,
    "norm1": _magnitudes,
    "norm2": _length,
}
"""Those without a rule are computed from weights only."""
ORDERS: Final = {"norm1": 1, "norm2": 2}
REDUCTIONS: Final = {
    "ReduceMean": "mean",
    "ReduceSum": "sum",
    "ReduceMax": "amax",
    "ReduceMin": "amin",
    "ReduceProd": "prod",
    "ReduceL1": "norm1",
    "ReduceL2": "norm2",
    "ReduceSumSquare": "squares",
}
POOLING: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    "MaxPool": pool,
    "AveragePool": pool,
    "GlobalAveragePool": whole_map,
    "GlobalMaxPool": whole_map,
    **dict.fromkeys(REDUCTIONS, reduction),
    "ArgMax": best,
    "TopK": best_few,
    "Pad": pad,
}
