"""Operators whose results follow from shapes and constants alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.constants import MAX_ELEMENTS
from phonebit.converter.importers.torch.element_positions import UnsupportedError

VALUES: Final = {
    "value_float": np.float32,
    "value_int": np.int64,
    "value_floats": np.float32,
    "value_ints": np.int64,
}


def _constant(builder: Builder, node: Node) -> Call:
    if "value" in node.attributes:
        return builder.literal(node.attributes["value"])
    for name, dtype in VALUES.items():
        if name in node.attributes:
            return builder.literal(np.array(node.attributes[name], dtype))
    raise UnsupportedError("has no value that is a number")


def _shape(builder: Builder, node: Node) -> Call:
    shape = np.array(node.operand(0).shape, np.int64)
    return builder.literal(shape[slice(node.get("start", 0), node.get("end"))])


def _size(builder: Builder, node: Node) -> Call:
    return builder.literal(np.array(math.prod(node.operand(0).shape), np.int64))


def _filled(builder: Builder, node: Node) -> Call:
    shape = builder.integers(node.operand(0), "sizes")
    if min(shape, default=0) < 0 or math.prod(shape) > MAX_ELEMENTS:
        raise UnsupportedError(f"has a result of shape {tuple(shape)}")
    value = np.asarray(node.get("value", np.zeros(1, np.float32)))
    if value.size != 1:
        raise UnsupportedError(f"fills a tensor with {value.size} values")
    return builder.literal(np.broadcast_to(value.reshape(()), shape))


def _range(builder: Builder, node: Node) -> Call:
    start, limit, step = (builder.number(node.operand(index), "limits") for index in range(3))
    steps = (limit - start) / step if step else math.nan
    if not math.isfinite(steps):
        raise UnsupportedError(f"goes from {start:g} to {limit:g} in steps of {step:g}")
    count = max(0, math.ceil(steps))
    numbers = partial(_numbers, start, step, count, str(node.operand(0).dtype))
    return builder.emit("arange", {}, numbers, (count,), node.operand(0).dtype)


def _numbers(start: float, step: float, count: int, dtype: str) -> NDArray[Any]:
    return (start + np.arange(count) * step).astype(dtype)


SHAPES: Final = {
    "Constant": _constant,
    "Shape": _shape,
    "Size": _size,
    "ConstantOfShape": _filled,
    "Range": _range,
}
