"""Channels in another order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Array, TensorType
from phonebit.converter.ops.base import F32, EngineOperator, ValueOperator, as_float
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import DataType, OpKind


@dataclass
class SelectChannels(ValueOperator, EngineOperator):
    """Output channel c is input channel indices[c], or 0.0 where that is -1; F32.

    One operator for slices, splits, shuffles and channels of zeros.
    """

    kinds = (OpKind.SELECT_CHANNELS,)
    reads = (F32,)
    indices: NDArray[np.int32]

    def value_type(self, operands: list[TensorType]) -> TensorType:
        height, width, channels = operands[0].shape
        if self.indices.ndim != 1 or not self.indices.size:
            raise ConversionError("needs a list of channels", got=self.indices.shape)
        if self.indices.min() < -1 or self.indices.max() >= channels:
            what = "selects channels that do not exist"
            raise ConversionError(what, expected=f"-1..{channels - 1}")
        return TensorType((height, width, self.indices.size), F32)

    def compute(self, operands: list[Array]) -> Array:
        selected = np.take(as_float(operands[0]), np.maximum(self.indices, 0), axis=3)
        selected[..., self.indices < 0] = 0
        return selected

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return True

    def write(self, record: RecordWriter) -> None:
        record.constant("weights", self.indices, DataType.I32)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.constant("weights"))
