"""Merging layers: sums, products and concatenations of tensors."""

from __future__ import annotations

import math

from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
)
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
    ones = constant(1, y.channels)
    y = ctx.step(y, ScaleBias(-ones, 0 * ones), suffix="negative", inner="negative")
    return pair(ctx, x, y, AddTensor(1), "", "")


def _merge(
    ctx: LayerContext, inputs: list[Tensor], step: AddTensor | MultiplyTensor, inner: str
) -> Tensor:
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
    if y.hwc not in (x.hwc, (1, 1, x.channels)):
        raise UnsupportedError(
            f"operands of shapes {x.shape} and {y.shape}; they must be equal, or one must be one "
            "number a channel"
        )
    return ctx.step(x, step, y, suffix=suffix, inner=inner)


def concatenate(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Concatenate, along the last axis."""
    return concatenated(ctx, inputs, ctx.config.get("axis", -1))


def concatenated(ctx: LayerContext, inputs: list[Tensor], axis: object) -> Tensor:
    """Tensors one behind the other, on the last axis."""
    if not inputs:
        raise UnsupportedError("called without tensors")
    inputs = [ctx.real(tensor) for tensor in inputs]
    first = inputs[0]
    if axis not in (-1, len(first.shape)):
        raise UnsupportedError(f"axis={axis}; only the last axis (-1) is supported")
    if any(tensor.shape[:-1] != first.shape[:-1] for tensor in inputs):
        raise UnsupportedError(f"operands of shapes {[tensor.shape for tensor in inputs]}")
    if len(inputs) == 1:
        return first
    bits = all(tensor.dtype == DataType.BIT for tensor in inputs)
    shape = (*first.shape[:-1], sum(tensor.channels for tensor in inputs))
    return ctx.emit(Concat(), inputs, shape, dtype=DataType.BIT if bits else DataType.F32)
