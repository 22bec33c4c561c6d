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
    PRelu,
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
        return np.where(value >= 0, value, value * step.slope.reshape(shape))
    if isinstance(step, Sigmoid):
        with np.errstate(over="ignore"):  # exp(+big) = inf gives the right answer: 0
            return Float32(1) / (Float32(1) + np.exp(-value))
    if isinstance(step, Tanh):
        return np.tanh(value)
    raise TypeError(f"unknown step {type(step).__name__}")


def batch_norm_scale(op: BatchNorm) -> NDArray[np.float32]:
    """Gamma / sqrt(variance + epsilon), each operation rounded to float32."""
    deviation = np.sqrt(op.variance.astype(np.float32) + Float32(op.epsilon))
    with np.errstate(divide="ignore", invalid="ignore"):  # rejected by inference, not here
        scale: NDArray[np.float32] = op.gamma.astype(np.float32) / deviation
    return scale


def batch_norm(op: BatchNorm, value: NDArray[np.float32]) -> NDArray[np.float32]:
    """(x - mean) * (gamma / sqrt(variance + epsilon)) + beta, each operation rounded to float32."""
    centred = value - op.mean.astype(np.float32)
    return centred * batch_norm_scale(op) + op.beta.astype(np.float32)
