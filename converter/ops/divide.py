"""Division by a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray, TensorType
from phonebit.converter.ops.base import Affine, as_float
from phonebit.errors import ConversionError


@dataclass
class Divide(Affine):
    """Source only. v / divisor[c], rounded once."""

    divisor: FloatArray

    def value_type(self, operands: list[TensorType]) -> TensorType:
        result = super().value_type(operands)
        if not np.all(self.divisor):
            raise ConversionError("divides by zero")
        return result

    def compute(self, operands: list[Array]) -> Array:
        return as_float(operands[0]) / self.divisor

    def scale_bias(self) -> tuple[FloatArray, FloatArray]:
        reciprocal = (1 / self.divisor.astype(np.float64)).astype(np.float32)
        return reciprocal, np.zeros_like(reciprocal)

    def directions(self) -> Directions | None:
        return np.sign(self.divisor).astype(np.int8)
