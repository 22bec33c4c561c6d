"""How many thresholds are reached: the level of a quantizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray, Shape, TensorType
from phonebit.converter.ops.base import F32
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import StepKind

MAX_COUNTED = 255


@dataclass
class Count(EpilogueOp):
    """How many of thresholds[c] are <= v; shape (C, n), n from 1 to ``MAX_COUNTED``."""

    kinds = (StepKind.COUNT,)
    makes_steps = True
    thresholds: FloatArray

    def check(self, shape: Shape, operands: list[TensorType]) -> None:
        got = self.thresholds.shape
        if len(got) != 2 or got[0] != shape[2] or not 1 <= got[1] <= MAX_COUNTED:
            expected = f"({shape[2]}, 1 to {MAX_COUNTED})"
            raise ConversionError("thresholds have the wrong shape", expected=expected, got=got)

    def is_per_channel(self, channels: int) -> bool:
        return True

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        reached = np.zeros(value.shape, np.float32)
        for row in self.thresholds.T:
            reached += value >= row
        return reached

    def borders(self, value: FloatArray) -> FloatArray:
        """How far each value is from the nearest threshold."""
        nearest = np.full(value.shape, np.inf, np.float32)
        for row in self.thresholds.T:
            nearest = np.minimum(nearest, np.abs(value - row))
        return nearest

    def write(self, record: RecordWriter) -> None:
        record.constant("constant_a", np.ascontiguousarray(self.thresholds.T), F32)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        channels = record.output.shape[2]
        return cls(np.ascontiguousarray(record.constant("constant_a").reshape(-1, channels).T))

    def directions(self) -> Directions | None:
        return np.ones(len(self.thresholds), np.int8)
