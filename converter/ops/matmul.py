"""The product of two activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from phonebit.converter.ir import Array, TensorType
from phonebit.converter.ops.base import BIT, F32, EngineOperator, ValueOperator
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import DataType, OpKind

MAX_FACTOR: Final = 1 << 22
"""Elements of one group of the second operand."""


@dataclass
class MatMul(ValueOperator, EngineOperator):
    """Group by group, the matrix product of a map's pixels with a second map: attention's heads.

    y[p, g N + n] = sum over k of a[p, g K + k] * b[k, g N + n], where pixels p and k are counted in
    row-major order; ``transposed``: b[n, g K + k]. The result has the height and width of a. Bits
    are -1 and +1, and their sums are exact.
    """

    kinds = (OpKind.MATMUL, OpKind.MATMUL_TRANSPOSED)
    min_operands = 2
    groups: int = 1
    transposed: bool = False

    @property
    def kind(self) -> int:
        return self.kinds[self.transposed]

    @property
    def reads(self) -> tuple[DataType, ...]:
        return (F32, BIT) if self.transposed else (F32,)

    def value_type(self, operands: list[TensorType]) -> TensorType:
        (height, width, channels), factor = (operand.shape for operand in operands)
        if self.groups < 1 or channels % self.groups or factor[2] % self.groups:
            what = f"groups={self.groups} must divide the channels of both operands"
            raise ConversionError(what, got=f"{channels} and {factor[2]}")
        rows, columns = factor[0] * factor[1], factor[2] // self.groups
        if self.transposed:
            rows, columns = columns, rows
        if rows != channels // self.groups:
            what = "operands of a matrix product do not fit"
            raise ConversionError(what, expected=f"sums of {channels // self.groups}", got=rows)
        if rows * columns > MAX_FACTOR:
            what = "the second operand of a matrix product is too large"
            raise ConversionError(what, expected=f"at most {MAX_FACTOR}", got=rows * columns)
        return TensorType((height, width, self.groups * columns), F32)

    def compute(self, operands: list[Array]) -> Array:
        """In float64, so that a sum is rounded once."""
        a, b = (operand.astype(np.float64) for operand in operands)
        batch, height, width, _ = a.shape
        left = a.reshape(batch, height * width, self.groups, -1).swapaxes(1, 2)
        right = b.reshape(batch, b.shape[1] * b.shape[2], self.groups, -1).swapaxes(1, 2)
        product = left @ (right.swapaxes(2, 3) if self.transposed else right)
        return product.swapaxes(1, 2).reshape(batch, height, width, -1).astype(np.float32)

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return True

    def write(self, record: RecordWriter) -> None:
        record.put(groups=self.groups)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.integer("groups"), record.integer("kind") == OpKind.MATMUL_TRANSPOSED)
