"""Whole numbers as bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Node, TensorType, Values
from phonebit.converter.ops.base import BIT, F32, EngineOperator, as_float
from phonebit.converter.ops.epilogue.base import signs_of
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import OpKind

MAX_PLANES = 8


@dataclass
class BitPlanes(EngineOperator):
    """Plane b is bit b of a value, cut to a whole number from 0 to 255 (NaN: 0), as -1 or +1.

    The node defines ``count`` BIT values of its operand's shape, its ``planes``.
    """

    kinds = (OpKind.BIT_PLANES,)
    reads = (F32,)
    count: int

    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        if node.value is not None or node.bits is not None or len(node.planes) != self.count:
            raise ConversionError("defines its planes", expected=self.count, got=node.planes)
        if not 1 <= self.count <= MAX_PLANES:
            raise ConversionError("planes", expected=f"1 to {MAX_PLANES}", got=self.count)
        return dict.fromkeys(node.planes, TensorType(operands[0].shape, BIT))

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        v = as_float(operands[0])
        one = np.ones(1, np.int32)
        whole = np.where(v > 0, np.minimum(v, 255), 0).astype(np.int32)
        return {name: signs_of(whole >> plane & 1, one) for plane, name in enumerate(node.planes)}

    def write(self, record: RecordWriter) -> None:
        record.put(planes=self.count)

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.integer("planes"))
