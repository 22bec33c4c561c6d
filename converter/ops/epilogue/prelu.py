"""Slopes below zero, and perhaps above."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray, Shape, TensorType
from phonebit.converter.ops.base import F32, arrays_of, check_per_channel
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import StepKind


@dataclass
class PRelu(EpilogueOp):
    """v * positive[i] if v >= 0 else v * slope[i]; C or H*W*C elements each, alike.

    Without ``positive`` values >= 0 stay as they are.
    """

    kinds = (StepKind.PRELU,)
    slope: FloatArray
    positive: FloatArray | None = None

    def check(self, shape: Shape, operands: list[TensorType]) -> None:
        if self.slope.size != math.prod(shape):
            check_per_channel(shape[2], slope=self.slope)
        if self.positive is not None and self.positive.shape != self.slope.shape:
            got = self.positive.shape
            raise ConversionError("slopes differ in shape", expected=self.slope.shape, got=got)

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        shape = value.shape[1:] if self.slope.size != value.shape[-1] else value.shape[-1:]
        above = value if self.positive is None else value * self.positive.reshape(shape)
        return np.where(value >= 0, above, value * self.slope.reshape(shape))

    def write(self, record: RecordWriter) -> None:
        record.constant("constant_a", self.slope, F32)
        if self.positive is not None:
            record.constant("constant_b", self.positive, F32)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        slope = record.constant("constant_a")
        return cls(slope, record.constant("constant_b") if record.has("constant_b") else None)

    def directions(self) -> Directions | None:
        rises = all(np.all(slope >= 0) for slope in arrays_of(self).values())
        return np.ones(1, np.int8) if rises else None

    def saturates(self) -> bool:
        return not self.slope.all()
