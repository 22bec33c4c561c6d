"""Maximum over windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Array, Node, Shape, TensorType, Values, Window
from phonebit.converter.ops.base import BIT, F32, as_float, check_per_channel
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.ops.with_epilogue import PoolOperator
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.converter.reference.convolution import pad_map, tap_view
from phonebit.errors import ConversionError
from phonebit.format.bits import pack_mask, unpack_mask
from phonebit.format.records import OpKind


@dataclass
class MaxPool2D(PoolOperator):
    """Maximum over the taps inside the map; of bits, minimum on channels set in ``flip``."""

    kinds = (OpKind.MAX_POOL2D,)
    reads = (F32, BIT)
    copies_bits = True
    window: Window
    flip: NDArray[np.bool_] | None = None
    epilogue: Epilogue = field(default_factory=Epilogue)

    def main_shape(self, main: TensorType) -> Shape:
        shape = super().main_shape(main)
        if self.flip is not None:
            if main.dtype != BIT:
                raise ConversionError("a flip mask needs bits", got=main.dtype.name)
            check_per_channel(shape[2], flip=self.flip)
        return shape

    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        if operands[0].dtype != BIT:
            return super().types(node, operands)
        shape = self.main_shape(operands[0])
        if node.value is None or node.bits is not None or self.epilogue.steps:
            what = "max-pooling of bits defines its main value only and has no steps"
            raise ConversionError(what)
        return {node.value: TensorType(shape, BIT)}

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        if operands[0].dtype != np.int8:
            return super().evaluate(node, operands, margins)
        if self.flip is None:
            return {node.outputs[0]: self._pooled(operands[0])}
        # min(a, b) = -max(-a, -b), so flipped channels are negated before and after.
        signs = np.where(self.flip, np.int8(-1), np.int8(1))
        return {node.outputs[0]: self._pooled(operands[0] * signs) * signs}

    def compute(self, main: Array) -> Array:
        return self._pooled(as_float(main))

    def _pooled(self, x: Array) -> Array:
        # Nothing is below -inf, and no +-1 value is below -1: such padding never wins.
        padded = pad_map(x, self.window, -1 if x.dtype == np.int8 else -np.inf)
        size = self.window.output_size(x.shape[1], x.shape[2])
        best = tap_view(padded, self.window, size, 0, 0).copy()
        for kh, kw in np.ndindex(self.window.kernel):
            np.maximum(best, tap_view(padded, self.window, size, kh, kw), out=best)
        return best

    def write(self, record: RecordWriter) -> None:
        super().write(record)
        if self.flip is not None and self.flip.any():
            record.constant("flip_mask", pack_mask(self.flip), BIT)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        if not record.has("flip_mask"):
            return cls(record.window())
        flip = unpack_mask(record.constant("flip_mask"), record.main.shape[2])
        return cls(record.window(), flip)
