"""Maps of another size, by interpolation; bilinear here."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import F32, EngineOperator, ValueOperator, as_float
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind


@dataclass
class Resize(ValueOperator, EngineOperator):
    """The map in another (height, width), each axis interpolated by itself.

    Pixels are squares whose centres are compared, and what lies beyond the outermost centres is
    their value. ``align_corners``: pixels are points, and the outermost ones fall together.
    """

    reads = (F32,)
    size: tuple[int, int]
    align_corners: bool = False

    @property
    def kind(self) -> int:
        return int(self.kinds[self.align_corners])

    def value_type(self, operands: list[TensorType]) -> TensorType:
        if min(self.size) < 1:
            raise ConversionError("an empty map", expected="at least 1x1", got=self.size)
        return TensorType((*self.size, operands[0].shape[2]), F32)

    def compute(self, operands: list[Array]) -> Array:
        return self._along(1, self._along(2, as_float(operands[0])))

    @abstractmethod
    def _along(self, axis: int, value: FloatArray) -> FloatArray:
        """The map with one axis of another size."""

    def _places(self, axis: int, value: FloatArray) -> FloatArray:
        """Where each new pixel of an axis lies among the old ones, in float32; it broadcasts."""
        old, new = value.shape[axis], self.size[axis - 1]
        place = np.arange(new, dtype=np.float32)
        if self.align_corners:
            scale = np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
            return _column(axis, place * scale)
        scale = np.float32(old) / np.float32(new)
        return _column(axis, (place + np.float32(0.5)) * scale - np.float32(0.5))

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        height, width, _ = record.output.shape
        return cls((height, width), record.integer("kind") == cls.kinds[1])


@dataclass
class ResizeBilinear(Resize):
    """Linearly, between the two nearest pixels."""

    kinds = (OpKind.RESIZE_BILINEAR, OpKind.RESIZE_BILINEAR_CORNERS)

    def _along(self, axis: int, value: FloatArray) -> FloatArray:
        places = np.maximum(self._places(axis, value), np.float32(0))
        low = np.minimum(np.floor(places), np.float32(value.shape[axis] - 1))
        first, second = taken(value, low, axis), taken(value, low + np.float32(1), axis)
        between: FloatArray = first + (second - first) * (places - low)
        return between


def taken(value: FloatArray, places: FloatArray, axis: int) -> FloatArray:
    """The pixels at whole places of an axis, limited to the map."""
    inside = np.clip(places.reshape(-1).astype(np.intp), 0, value.shape[axis] - 1)
    return np.take(value, inside, axis)


def _column(axis: int, places: FloatArray) -> FloatArray:
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    return places.reshape(shape)
