"""Limits from below and above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import StepKind


@dataclass
class Clamp(EpilogueOp):
    """min(max(v, low), high); ReLU is (0, inf)."""

    kinds = (StepKind.CLAMP,)
    low: float
    high: float

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return np.minimum(np.maximum(value, np.float32(self.low)), np.float32(self.high))

    def write(self, record: RecordWriter) -> None:
        record.put(value_a=self.low, value_b=self.high)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.number("value_a"), record.number("value_b"))

    def directions(self) -> Directions | None:
        return np.ones(1, np.int8)

    def saturates(self) -> bool:
        return True
