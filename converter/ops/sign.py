"""The sign of a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phonebit.converter.ir import Array, FloatArray, Node, TensorType, Values
from phonebit.converter.ops.base import BIT, ValueOperator, as_float
from phonebit.converter.ops.epilogue.base import compare, signs_of


@dataclass
class Sign(ValueOperator):
    """Source only. v >= threshold -> +1, else -1, a BIT tensor; sign(0) = +1 by default."""

    threshold: float = 0.0

    def value_type(self, operands: list[TensorType]) -> TensorType:
        return TensorType(operands[0].shape, BIT)

    def compute(self, operands: list[Array]) -> Array:
        return signs_of(as_float(operands[0]), np.array(self.threshold, np.float32))

    def levels(self) -> FloatArray:
        return np.array([-1, 1], np.float32)

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        threshold = np.array(self.threshold, np.float32)
        return compare(node.outputs[0], as_float(operands[0]), threshold, margins)
