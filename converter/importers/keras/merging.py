"""Merging layers: sums, products and concatenations of tensors.

Tensors of one shape, and one number for each channel, are what the engine's layers read. Whatever
else Keras lets meet is arranged by the shared rules.
"""

from __future__ import annotations

import math
from functools import partial

from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
)
from phonebit.converter.importers.keras.shared import by_calls
from phonebit.converter.importers.keras.shared_layers import concatenate as joined
from phonebit.converter.importers.keras.shared_layers import merged
from phonebit.converter.ops import Concat
from phonebit.converter.ops.epilogue import AddTensor, MultiplyTensor, ScaleBias
from phonebit.format.records import DataType


def add(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Add, from left to right."""
    return _merge(ctx, inputs, AddTensor(1), "sum")


def multiply(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Multiply, from left to right."""
    return _merge(ctx, inputs, MultiplyTensor(1), "product")


def subtract(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Subtract: x - y = x + (-1) * y, which rounds the same."""
    if len(inputs) != 2:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected two")
    x, y = (ctx.real(tensor) for tensor in inputs)
    if not fit(x, y):
        return by_calls(partial(merged, "Sub"), ctx, inputs)[0]
    ones = constant(1, y.channels)
    y = ctx.step(y, ScaleBias(-ones, 0 * ones), suffix="negative", inner="negative")
    return pair(ctx, x, y, AddTensor(1), "", "")


def fit(x: Tensor, y: Tensor) -> bool:
    """Whether one is as large as the other, or is one number for each of its channels."""
    large, small = sorted((x, y), key=lambda tensor: math.prod(tensor.shape), reverse=True)
    if len(large.shape) != len(small.shape) and len(small.shape) != 1:
        return False
    return small.hwc in (large.hwc, (1, 1, large.channels))


def _merge(
    ctx: LayerContext, inputs: list[Tensor], step: AddTensor | MultiplyTensor, inner: str
) -> Tensor:
    if not all(map(fit, inputs, inputs[1:])):
        rule = partial(merged, "Add" if isinstance(step, AddTensor) else "Mul")
        return by_calls(rule, ctx, inputs)[0]
    if len(inputs) < 2:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected at least two")
    total, *others = (ctx.real(tensor) for tensor in inputs)
    for position, other in enumerate(others, start=1):
        name = "" if position == len(others) else f"{inner}{position}"
        total = pair(ctx, total, other, step, name, name)
    return total


def pair(
    ctx: LayerContext,
    x: Tensor,
    y: Tensor,
    step: AddTensor | MultiplyTensor,
    suffix: str,
    inner: str,
) -> Tensor:
    """One sum or product; both commute to the last bit, so the larger operand can come first."""
    if math.prod(x.shape) < math.prod(y.shape):
        x, y = y, x
    return ctx.step(x, step, y, suffix=suffix, inner=inner)


def concatenate(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Concatenate."""
    return concatenated(ctx, inputs, ctx.config.get("axis", -1))


def concatenated(ctx: LayerContext, inputs: list[Tensor], axis: object) -> Tensor:
    """Tensors one after the other, along an axis."""
    if not inputs:
        raise UnsupportedError("called without tensors")
    inputs = [ctx.real(tensor) for tensor in inputs]
    first = inputs[0]
    if axis not in (-1, len(first.shape)):
        return by_calls(joined, ctx, inputs, {"axis": axis})[0]
    if any(tensor.shape[:-1] != first.shape[:-1] for tensor in inputs):
        raise UnsupportedError(f"operands of shapes {[tensor.shape for tensor in inputs]}")
    if len(inputs) == 1:
        return first
    bits = all(tensor.dtype == DataType.BIT for tensor in inputs)
    shape = (*first.shape[:-1], sum(tensor.channels for tensor in inputs))
    return ctx.emit(Concat(), inputs, shape, dtype=DataType.BIT if bits else DataType.F32)
