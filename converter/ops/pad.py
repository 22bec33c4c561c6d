"""Padding around the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, TensorType
from phonebit.converter.ops.base import BIT, F32, EngineOperator, ValueOperator, as_float
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind


@dataclass
class Pad(ValueOperator, EngineOperator):
    """``value`` around the map; pads are (top, left, bottom, right)."""

    kinds = (OpKind.PAD,)
    reads = (F32,)
    pads: tuple[int, int, int, int]
    value: float = 0.0

    def value_type(self, operands: list[TensorType]) -> TensorType:
        (height, width, channels), dtype = operands[0].shape, operands[0].dtype
        top, left, bottom, right = self.pads
        if min(self.pads) < 0:
            raise ConversionError("negative padding", got=self.pads)
        stays_bit = dtype == BIT and self._is_sign
        shape = (height + top + bottom, width + left + right, channels)
        return TensorType(shape, BIT if stays_bit else F32)

    @property
    def _is_sign(self) -> bool:
        """Bits padded with anything else, 0 for one, are not two-valued."""
        return self.value in (-1.0, 1.0)

    def compute(self, operands: list[Array]) -> Array:
        main = operands[0]
        if main.dtype != np.int8 or not self._is_sign:
            main = as_float(main)
        top, left, bottom, right = self.pads
        pads = ((0, 0), (top, bottom), (left, right), (0, 0))
        return np.pad(main, pads, constant_values=main.dtype.type(self.value))

    def write(self, record: RecordWriter) -> None:
        record.pads(self.pads)
        record.put(pad_value=self.value)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.pads(), record.number("pad_value"))
