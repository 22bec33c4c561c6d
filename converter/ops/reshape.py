"""The same elements in another shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from phonebit.converter.ir import Array, Shape, TensorType
from phonebit.converter.ops.base import F32, EngineOperator, ValueOperator
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind


@dataclass
class Reshape(ValueOperator, EngineOperator):
    """The same elements in NHWC order under a new (height, width, channels)."""

    kinds = (OpKind.RESHAPE,)
    reads = (F32,)
    shape: Shape

    def value_type(self, operands: list[TensorType]) -> TensorType:
        main = operands[0]
        if math.prod(self.shape) != math.prod(main.shape) or min(self.shape) < 1:
            what = "new shape has another element count"
            raise ConversionError(what, expected=main.shape, got=self.shape)
        return TensorType(self.shape, main.dtype)

    def compute(self, operands: list[Array]) -> Array:
        return operands[0].reshape(operands[0].shape[0], *self.shape)

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.output.shape)
