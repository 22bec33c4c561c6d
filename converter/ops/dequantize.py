"""Bytes as the numbers that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import U8, Affine, as_float
from phonebit.errors import ConversionError


@dataclass
class Dequantize(Affine):
    """Source only. u8 -> float32: x * scale[c] + offset[c] (C elements each).

    ``rational`` is (mul, add, divisor) when the value is exactly (mul * x + add) / divisor with
    integers for every channel, e.g. (2, -255, 255) for the range -1..1; else None.
    """

    scale: FloatArray
    offset: FloatArray
    rational: tuple[int, int, int] | None = None

    def value_type(self, operands: list[TensorType]) -> TensorType:
        if operands[0].dtype != U8:
            got = operands[0].dtype.name
            raise ConversionError("dequantizes a value that is not u8", got=got)
        return super().value_type(operands)

    def compute(self, operands: list[Array]) -> Array:
        return as_float(operands[0]) * self.scale + self.offset

    def scale_bias(self) -> tuple[FloatArray, FloatArray]:
        return self.scale, self.offset
