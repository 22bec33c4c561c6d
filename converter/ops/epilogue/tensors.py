"""Sum and product with another tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray, Shape, TensorType
from phonebit.converter.ops.base import as_float
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import StepKind


@dataclass
class TensorOp(EpilogueOp):
    """Combines v with t, the node's input number ``operand`` (same shape or (1, 1, C))."""

    operand: int

    def check(self, shape: Shape, operands: list[TensorType]) -> None:
        if not 0 <= self.operand < len(operands):
            raise ConversionError("step refers to a missing operand", got=self.operand)
        other = operands[self.operand].shape
        if other not in (shape, (1, 1, shape[2])):
            expected = f"{shape} or {(1, 1, shape[2])}"
            raise ConversionError("second operand does not fit", expected=expected, got=other)

    def write(self, record: RecordWriter) -> None:
        record.operand(self.operand)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.operand())

    def is_per_channel(self, channels: int) -> bool:
        return False

    def directions(self) -> Directions | None:
        return None


@dataclass
class AddTensor(TensorOp):
    """v + t, where t is the node's input number ``operand`` (same shape or (1, 1, C))."""

    kinds = (StepKind.ADD,)

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return value + as_float(operands[self.operand])

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return all(inputs)


@dataclass
class MultiplyTensor(TensorOp):
    """v * t, where t is the node's input number ``operand`` (same shape or (1, 1, C))."""

    kinds = (StepKind.MULTIPLY,)

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return value * as_float(operands[self.operand])

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return any(inputs)

    def gain(self, operands: list[Array]) -> Array | float:
        return float(np.abs(operands[self.operand]).max())
