"""Convolution of bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Window
from phonebit.converter.ops.convolution import BinaryConvolution
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import OpKind


@dataclass
class BinaryConv2D(BinaryConvolution):
    """Engine only. Input BIT, ``weights`` int8 of -1/+1, padded taps count as ``pad_value``.

    ``pad_value`` is -1, 0 or 1.
    """

    kinds = (OpKind.BINARY_CONV2D,)
    weights: NDArray[np.int8]
    window: Window
    groups: int = 1
    pad_value: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)

    def groups_of(self, channels: int) -> int:
        return self.groups

    def write(self, record: RecordWriter) -> None:
        super().write(record)
        record.put(groups=self.groups)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        groups = record.integer("groups")
        weights = cls.read_weights(record, groups)
        return cls(weights, record.window(), groups, int(record.number("pad_value")))
