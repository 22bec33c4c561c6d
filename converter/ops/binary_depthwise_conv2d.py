"""Convolution of bits, each channel by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Shape, TensorType, Window
from phonebit.converter.ops.convolution import BinaryConvolution
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.records import RecordReader
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind


@dataclass
class BinaryDepthwiseConv2D(BinaryConvolution):
    """Engine only. One filter for each channel: ``weights`` int8 of -1/+1, shape (C, KH, KW, 1)."""

    kinds = (OpKind.BINARY_DEPTHWISE_CONV2D,)
    is_depthwise = True
    weights: NDArray[np.int8]
    window: Window
    pad_value: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)

    def groups_of(self, channels: int) -> int:
        return channels

    def main_shape(self, main: TensorType) -> Shape:
        shape = super().main_shape(main)
        if shape[2] != main.shape[2]:
            what = "one filter for each channel"
            raise ConversionError(what, expected=main.shape[2], got=shape[2])
        return shape

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        weights = cls.read_weights(record, record.main.shape[2])
        return cls(weights, record.window(), int(record.number("pad_value")))
