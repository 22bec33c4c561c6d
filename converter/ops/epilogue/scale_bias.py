"""Scale and bias of each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray
from phonebit.converter.ops.base import F32
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import StepKind


@dataclass
class ScaleBias(EpilogueOp):
    """v * scale[c] + bias[c], rounded after the product and after the sum."""

    kinds = (StepKind.SCALE_BIAS,)
    scale: FloatArray
    bias: FloatArray

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return value * self.scale + self.bias

    def write(self, record: RecordWriter) -> None:
        record.constant("constant_a", self.scale, F32)
        record.constant("constant_b", self.bias, F32)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.constant("constant_a"), record.constant("constant_b"))

    def directions(self) -> Directions | None:
        return np.sign(self.scale).astype(np.int8)

    def gain(self, operands: list[Array]) -> Array | float:
        return np.abs(self.scale)
