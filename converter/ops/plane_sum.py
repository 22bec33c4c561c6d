"""A quantized value as a sum of bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import BIT, F32, ValueOperator, check_per_channel
from phonebit.errors import ConversionError


@dataclass
class PlaneSum(ValueOperator):
    """Never in files. offset[c] + sum over i of scales[i, c] * b_i: a Quantize as n bit-planes.

    The node's inputs are n BIT values of one shape; the result is F32. As a thermometer, the lowest
    threshold's is the first (b_i is +1 where v >= thresholds[i], so b_0 >= b_1 >= ...). If
    ``binary``, they are the bits of the level, the lowest first, and scales[i] is 2^i scales[0].
    ``offset`` is float64 where a level is 0 only if the offset is not rounded.
    """

    scales: FloatArray
    offset: NDArray[np.floating]
    binary: bool = False

    def value_type(self, operands: list[TensorType]) -> TensorType:
        shape = operands[0].shape
        planes = (len(operands), shape[2])
        if self.scales.shape != planes:
            what = "scales have the wrong shape"
            raise ConversionError(what, expected=planes, got=self.scales.shape)
        check_per_channel(shape[2], offset=self.offset)
        if any(operand != TensorType(shape, BIT) for operand in operands):
            raise ConversionError("planes must be bits of one shape", got=operands)
        return TensorType(shape, F32)

    def compute(self, operands: list[Array]) -> Array:
        """In float64, so that it is rounded once."""
        total = np.zeros(operands[0].shape, np.float64) + self.offset
        for scale, plane in zip(self.scales, operands, strict=True):
            total += scale.astype(np.float64) * plane
        return total.astype(np.float32)

    @property
    def size(self) -> NDArray[np.float64]:
        """The largest magnitude of each channel's sums: what their rounding is relative to."""
        total: NDArray[np.float64] = np.abs(self.scales).sum(axis=0) + np.abs(self.offset)
        return total
