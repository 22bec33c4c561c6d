"""Batch normalisation at inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import Affine, as_float
from phonebit.errors import ConversionError


@dataclass
class BatchNorm(Affine):
    """Source only. Batch normalisation at inference, in the float32 arithmetic of its framework.

    "keras": (x - mean) * (gamma / sqrt(variance + epsilon)) + beta, each operation rounded.
    "torch": x * scale + (beta - mean * scale), the products and sums fused (FMA), with
    scale = (1 / sqrt(variance + epsilon)) * gamma: PyTorch's vectorised CPU code, to the bit.
    """

    gamma: FloatArray
    beta: FloatArray
    mean: FloatArray
    variance: FloatArray
    epsilon: float
    arithmetic: Literal["keras", "torch"] = "keras"

    def value_type(self, operands: list[TensorType]) -> TensorType:
        result = super().value_type(operands)
        spread = self.variance.astype(np.float32) + np.float32(self.epsilon)
        if not np.all(spread > 0):
            got = float(np.min(spread))
            raise ConversionError("variance + epsilon must be positive", expected="> 0", got=got)
        return result

    def compute(self, operands: list[Array]) -> Array:
        value, scale = as_float(operands[0]), self.scale()
        mean, beta = self.mean.astype(np.float32), self.beta.astype(np.float32)
        if self.arithmetic == "keras":
            return (value - mean) * scale + beta
        return _fused_multiply_add(value, scale, _fused_multiply_add(-mean, scale, beta))

    def scale(self) -> FloatArray:
        """What the input is multiplied by, each operation rounded as the framework does."""
        deviation = np.sqrt(self.variance.astype(np.float32) + np.float32(self.epsilon))
        gamma = self.gamma.astype(np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):  # rejected by value_type, not here
            scale: FloatArray
            if self.arithmetic == "keras":
                scale = gamma / deviation
            else:
                scale = np.float32(1) / deviation * gamma
        return scale

    def scale_bias(self) -> tuple[FloatArray, FloatArray]:
        scale = self.scale()
        bias = self.beta.astype(np.float64) - self.mean.astype(np.float64) * scale
        return scale, bias.astype(np.float32)


def _fused_multiply_add(a: Array, b: Array, c: Array) -> FloatArray:
    """A * b + c of float32 arrays with one rounding; products are exact in float64."""
    total: FloatArray = (a.astype(np.float64) * b + c).astype(np.float32)
    return total
