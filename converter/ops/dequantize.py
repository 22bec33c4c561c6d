"""Bytes as the numbers that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import F32, U8, Affine, as_float, check_per_channel
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
        main = operands[0]
        if main.dtype != U8:
            raise ConversionError("dequantizes a value that is not u8", got=main.dtype.name)
        check_per_channel(main.shape[2], scale=self.scale, offset=self.offset)
        return TensorType(main.shape, F32)

    def compute(self, operands: list[Array]) -> Array:
        return as_float(operands[0]) * self.scale + self.offset

    def scale_bias(self) -> tuple[FloatArray, FloatArray]:
        return self.scale, self.offset
