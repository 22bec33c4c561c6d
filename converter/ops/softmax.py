"""Softmax and its logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, TensorType
from phonebit.converter.ops.base import F32, EngineOperator, ValueOperator, as_float
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import OpKind


@dataclass
class Softmax(ValueOperator, EngineOperator):
    """Over the channels; ``log``: its natural logarithm, computed as v - max - log(sum exp)."""

    kinds = (OpKind.SOFTMAX, OpKind.LOG_SOFTMAX)
    reads = (F32,)
    log: bool = False

    @property
    def kind(self) -> OpKind:
        return self.kinds[self.log]

    def value_type(self, operands: list[TensorType]) -> TensorType:
        return TensorType(operands[0].shape, F32)

    def compute(self, operands: list[Array]) -> Array:
        value = as_float(operands[0])
        shifted = value - value.max(axis=3, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=3, keepdims=True)
        shares: Array = shifted - np.log(total) if self.log else powers / total
        return shares

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(log=record.integer("kind") == OpKind.LOG_SOFTMAX)
