"""Maps of another size by bilinear interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import F32, EngineOperator, ValueOperator, as_float
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind


@dataclass
class ResizeBilinear(ValueOperator, EngineOperator):
    """The map in another (height, width), each axis interpolated linearly.

    Pixels are squares whose centres are compared, and what lies beyond the outermost centres is
    their value. ``align_corners``: pixels are points, and the outermost ones fall together.
    """

    kinds = (OpKind.RESIZE_BILINEAR, OpKind.RESIZE_BILINEAR_CORNERS)
    reads = (F32,)
    size: tuple[int, int]
    align_corners: bool = False

    @property
    def kind(self) -> OpKind:
        return self.kinds[self.align_corners]

    def value_type(self, operands: list[TensorType]) -> TensorType:
        if min(self.size) < 1:
            raise ConversionError("an empty map", expected="at least 1x1", got=self.size)
        return TensorType((*self.size, operands[0].shape[2]), F32)

    def compute(self, operands: list[Array]) -> Array:
        return self._along(1, self._along(2, as_float(operands[0])))

    def _along(self, axis: int, value: FloatArray) -> FloatArray:
        low, high, share = self._taps(value.shape[axis], self.size[axis - 1])
        first, second = np.take(value, low, axis), np.take(value, high, axis)
        column = [1, 1, 1, 1]
        column[axis] = -1
        return first + (second - first) * share.reshape(column)

    def _taps(self, old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
        """The two pixels that each new one lies between, and the share of the second; float32."""
        place = np.arange(new, dtype=np.float32)
        if self.align_corners:
            scale = np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
            at = place * scale
        else:
            scale = np.float32(old) / np.float32(new)
            at = np.maximum((place + np.float32(0.5)) * scale - np.float32(0.5), np.float32(0))
        low = np.minimum(at.astype(np.intp), old - 1)
        return low, np.minimum(low + 1, old - 1), at - low.astype(np.float32)

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        height, width, _ = record.output.shape
        return cls((height, width), record.integer("kind") == OpKind.RESIZE_BILINEAR_CORNERS)
