"""Convolution of float values, or of bytes with weights of -1/+1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from phonebit.converter.ir import Array, FloatArray, Shape, TensorType, Window
from phonebit.converter.ops.base import BIT, F32, U8, as_float, check_per_channel
from phonebit.converter.ops.convolution import Convolution
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.converter.reference.convolution import convolve, convolve_integers
from phonebit.format.records import DataType, OpKind

MAX_ACCUMULATOR = (1 << 31) - 1


@dataclass
class Conv2D(Convolution):
    """Convolution or (as a window over the whole map) dense layer.

    Source form: ``weights`` are what the framework multiplies by (after its kernel quantizer),
    ``pad_value`` is what padded taps count as, ``bias`` may be None, ``epilogue`` is empty and the
    input may be BIT (then the product is over -1/+1).
    Engine form: input F32 (any weights), or U8 with weights of -1/+1 only, where
    the accumulator is sum w * (input_mul * x + input_add); ``bias`` None and ``pad_value`` 0.
    ``stored_as`` F16: every weight is a half, and the file holds 2 bytes of it; I8: an integer of
    at most 127, and 1 byte.
    """

    kinds = (OpKind.CONV2D,)
    reads = (U8, F32)
    weights: FloatArray
    window: Window
    groups: int = 1
    pad_value: float = 0.0
    bias: FloatArray | None = None
    input_mul: int = 1
    input_add: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)
    stored_as: Literal[DataType.F32, DataType.F16, DataType.I8] = DataType.F32

    @property
    def stored_type(self) -> DataType:
        return BIT if np.all(np.abs(self.weights) == 1) else self.stored_as

    def groups_of(self, channels: int) -> int:
        return self.groups

    def main_shape(self, main: TensorType) -> Shape:
        shape = super().main_shape(main)
        if self.bias is not None:
            check_per_channel(shape[2], bias=self.bias)
        return shape

    def is_integer(self, main: DataType) -> bool:
        return main == U8

    @property
    def largest_sum(self) -> int:
        largest = max(abs(self.input_add), abs(255 * self.input_mul + self.input_add))
        return super().largest_sum * largest

    def compute(self, main: Array) -> Array:
        if main.dtype == np.uint8:
            integers = main.astype(np.int32) * self.input_mul + self.input_add
            return convolve_integers(integers, self.weights, self.window, self.groups, 0)
        sums = convolve(as_float(main), self.weights, self.window, self.groups, self.pad_value)
        return sums if self.bias is None else sums + self.bias

    def parameters(self) -> list[Array]:
        weights, *epilogue = super().parameters()
        return [weights, *([] if self.bias is None else [self.bias]), *epilogue]

    def problems(self, kind: DataType) -> list[str]:
        problems = super().problems(kind)
        if self.bias is not None:
            problems.append("a bias belongs into the epilogue")
        if self.pad_value != 0:
            problems.append(f"pads with {self.pad_value}, can pad with 0")
        if self.stored_as != F32 and kind != F32:
            name = self.stored_as.name
            problems.append(f"reads {kind.name} with weights of {name}, can read F32")
        problems += self._rounding_problems()
        if kind == U8:
            problems += self.sign_problems()
            if self.largest_sum > MAX_ACCUMULATOR:
                what = f"the accumulator can reach {self.largest_sum}, more than 32 bits hold"
                problems.append(what)
        return problems

    def _rounding_problems(self) -> list[str]:
        if self.stored_as == DataType.F16:
            with np.errstate(over="ignore"):
                halves = self.weights.astype(np.float16)
            if not np.all(np.isfinite(halves) & (halves == self.weights)):
                return ["weights stored as F16 must be finite halves"]
        if self.stored_as == DataType.I8:
            integers = np.rint(self.weights) == self.weights
            if not np.all((np.abs(self.weights) <= 127) & integers):
                return ["weights stored as I8 must be integers from -127 to 127"]
        return []

    def write(self, record: RecordWriter) -> None:
        super().write(record)
        record.put(groups=self.groups, input_mul=self.input_mul, input_add=self.input_add)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        groups = record.integer("groups")
        weights = cls.read_weights(record, groups).astype(np.float32, copy=False)
        op = cls(weights, record.window(), groups)
        op.input_mul, op.input_add = record.integer("input_mul"), record.integer("input_add")
        stored = record.constant_type("weights")
        if stored is DataType.F16 or stored is DataType.I8:
            op.stored_as = stored
        return op
