"""Concatenation along the channels."""

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
class Concat(ValueOperator, EngineOperator):
    """Concatenation along the channels, of F32 or of BIT values."""

    kinds = (OpKind.CONCAT,)
    reads = (F32, BIT)
    copies_bits = True
    min_operands = 2

    def value_type(self, operands: list[TensorType]) -> TensorType:
        shape = operands[0].shape
        for operand in operands:
            if operand.shape[:2] != shape[:2]:
                what = "operands differ in size"
                raise ConversionError(what, expected=shape, got=operand.shape)
        every_bit = all(operand.dtype == BIT for operand in operands)
        total = sum(operand.shape[2] for operand in operands)
        return TensorType((*shape[:2], total), BIT if every_bit else F32)

    def compute(self, operands: list[Array]) -> Array:
        if any(operand.dtype != np.int8 for operand in operands):
            operands = [as_float(operand) for operand in operands]
        return np.concatenate(operands, axis=3)

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls()
