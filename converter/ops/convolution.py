"""What convolutions have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.constants import weight_words, weights_from_words
from phonebit.converter.ir import Array, Shape, TensorType
from phonebit.converter.ops.base import BIT
from phonebit.converter.ops.with_epilogue import WindowOperator
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.converter.reference.convolution import convolve_integers
from phonebit.errors import ConversionError
from phonebit.format.contents import CONSTANT_TYPES
from phonebit.format.records import DataType


class Convolution(WindowOperator):
    """Sums of products with ``weights`` (Cout, KH, KW, Cin / groups)."""

    weights: NDArray[Any]
    pad_value: float
    is_depthwise: ClassVar[bool] = False
    """Whether there is one filter for each channel; their bits lie side by side in words."""

    @property
    def stored_type(self) -> DataType:
        """How the weights are written: BIT, I8, F16 or F32."""
        return BIT

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights in the file."""
        if self.stored_type == BIT:
            return weight_words(self.weights, self.is_depthwise).nbytes
        return self.weights.size * CONSTANT_TYPES[self.stored_type].itemsize

    @property
    def largest_sum(self) -> int:
        """The largest magnitude of an integer accumulator."""
        return math.prod(self.weights.shape[1:])

    @abstractmethod
    def groups_of(self, channels: int) -> int:
        """Number of groups over this many input channels."""

    def main_shape(self, main: TensorType) -> Shape:
        cout, channels = self.weights.shape[0], main.shape[2]
        size, groups = self.size(main), self.groups_of(channels)
        if groups < 1 or channels % groups or cout % groups:
            what = "groups must divide the input and output channels"
            got = f"groups={groups}, in_channels={channels}, out_channels={cout}"
            raise ConversionError(what, got=got)
        expected = (cout, *self.window.kernel, channels // groups)
        if self.weights.shape != expected:
            what = "weights do not fit the input"
            raise ConversionError(what, expected=expected, got=self.weights.shape)
        return (*size, cout)

    def parameters(self) -> list[Array]:
        return [self.weights, *super().parameters()]

    def write(self, record: RecordWriter) -> None:
        super().write(record)
        binary = self.stored_type == BIT
        stored = weight_words(self.weights, self.is_depthwise) if binary else self.weights
        record.constant("weights", stored, self.stored_type)

    @classmethod
    def read_weights(cls, record: RecordReader, groups: int) -> NDArray[Any]:
        """The weights of a record; BIT as int8 -1 or +1."""
        window = record.window()
        shape = (record.output.shape[2], *window.kernel, record.main.shape[2] // groups)
        stored = record.constant("weights")
        if record.constant_type("weights") != BIT:
            return stored.reshape(shape)
        return weights_from_words(stored, shape, cls.is_depthwise)

    def sign_problems(self) -> list[str]:
        """What is wrong with the weights of a convolution of integers."""
        if np.all(np.abs(self.weights) == 1):
            return []
        return ["weights of an integer convolution must be -1 or +1"]


class BinaryConvolution(Convolution):
    """Of BIT values with ``weights`` int8 of -1/+1, exact; padded taps count as ``pad_value``."""

    reads = (BIT,)
    pad_value: int

    def main_shape(self, main: TensorType) -> Shape:
        shape = super().main_shape(main)
        if main.dtype != BIT:
            raise ConversionError("a binary convolution reads bits", got=main.dtype.name)
        if self.pad_value not in (-1, 0, 1):
            raise ConversionError("padding of bits", expected="-1, 0 or 1", got=self.pad_value)
        return shape

    def is_integer(self, main: DataType) -> bool:
        return True

    def compute(self, main: Array) -> Array:
        groups = self.groups_of(main.shape[3])
        return convolve_integers(main, self.weights, self.window, groups, self.pad_value)

    def problems(self, kind: DataType) -> list[str]:
        return [*super().problems(kind), *self.sign_problems()]

    def write(self, record: RecordWriter) -> None:
        super().write(record)
        record.put(pad_value=self.pad_value)
