"""Epilogue steps in NumPy: one float32 rounding per arithmetic sign, as docs/format.md says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import (
    AddTensor,
    BatchNorm,
    Clamp,
    MultiplyTensor,
    PlaneSum,
    PRelu,
    Round,
    ScaleBias,
    Sigmoid,
    Step,
    Tanh,
)

Array = NDArray[Any]
Float32 = np.float32


def as_float(x: Array) -> NDArray[np.float32]:
    """Any value as float32: accumulators and u8 by conversion, bits as -1.0 or +1.0."""
    return x.astype(np.float32, copy=False)


def apply_step(step: Step, value: NDArray[np.float32], operands: list[Array]) -> Array:
    """One step.

    Args:
        step: What to do.
        value: Shape (N, H, W, C).
        operands: The node's input values, to which tensor steps refer by number.

    Returns:
        float32 array of ``value``'s shape.
    """
    if isinstance(step, ScaleBias):
        return value * step.scale + step.bias
    if isinstance(step, AddTensor):
        return value + as_float(operands[step.operand])
    if isinstance(step, MultiplyTensor):
        return value * as_float(operands[step.operand])
    if isinstance(step, Clamp):
        return np.minimum(np.maximum(value, Float32(step.low)), Float32(step.high))
    if isinstance(step, PRelu):
        shape = value.shape[1:] if step.slope.size != value.shape[-1] else value.shape[-1:]
        above = value if step.positive is None else value * step.positive.reshape(shape)
        return np.where(value >= 0, above, value * step.slope.reshape(shape))
    if isinstance(step, Sigmoid):
        with np.errstate(over="ignore"):  # exp(+big) = inf gives the right answer: 0
            return Float32(1) / (Float32(1) + np.exp(-value))
    if isinstance(step, Tanh):
        return np.tanh(value)
    if isinstance(step, Round):
        return np.rint(value)
    raise TypeError(f"unknown step {type(step).__name__}")


def batch_norm_scale(op: BatchNorm) -> NDArray[np.float32]:
    """What the input is multiplied by, each operation rounded to float32 as the framework does."""
    deviation = np.sqrt(op.variance.astype(np.float32) + Float32(op.epsilon))
    gamma = op.gamma.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):  # rejected by inference, not here
        scale: NDArray[np.float32]
        scale = gamma / deviation if op.arithmetic == "keras" else Float32(1) / deviation * gamma
    return scale


def batch_norm(op: BatchNorm, value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Batch normalisation in the order of its framework, see ``BatchNorm``."""
    scale, mean, beta = batch_norm_scale(op), op.mean.astype(np.float32), op.beta.astype(np.float32)
    if op.arithmetic == "keras":
        return (value - mean) * scale + beta
    return fused_multiply_add(value, scale, fused_multiply_add(-mean, scale, beta))


def fused_multiply_add(a: Array, b: Array, c: Array) -> NDArray[np.float32]:
    """Product and sum, a * b + c, of float32 arrays with one rounding.

    Products of float32 are exact in float64.
    """
    total: NDArray[np.float32] = (a.astype(np.float64) * b + c).astype(np.float32)
    return total


def plane_sum(op: PlaneSum, planes: list[Array]) -> NDArray[np.float32]:
    """A quantized value from its planes of bits, in float64, so that it is rounded once."""
    total = np.zeros(planes[0].shape, np.float64) + op.offset
    for scale, plane in zip(op.scales, planes, strict=True):
        total += scale.astype(np.float64) * plane
    return total.astype(np.float32)
