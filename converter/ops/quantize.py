"""A few values in place of many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import F32, ValueOperator, as_float
from phonebit.errors import ConversionError


@dataclass
class Quantize(ValueOperator):
    """Source only. A value becomes one of a few: values[number of thresholds t with v >= t].

    ``thresholds`` ascend, shape (n,), or (n, C) where channels have their own, some of which may be
    equal; ``values`` have shape (n + 1,), the lowest first. torch.sign, whose 0 stays 0, is
    thresholds (0, SMALLEST), values (-1, 0, 1); a bare sign with sign(0) = +1 is the operator Sign
    instead. What a network counts as an exact zero is decided by ``passes/decide_zeros.py``.
    """

    thresholds: FloatArray
    values: FloatArray

    @property
    def count(self) -> int:
        """Number of thresholds."""
        return len(self.thresholds)

    @property
    def has_own_thresholds(self) -> bool:
        """Whether each channel has its own."""
        return self.thresholds.ndim == 2

    def value_type(self, operands: list[TensorType]) -> TensorType:
        shape = self.thresholds.shape
        if shape[1:] not in ((), operands[0].shape[2:]) or not self.count:
            raise ConversionError("thresholds of a quantizer have the wrong shape", got=shape)
        if self.values.shape != (self.count + 1,):
            what = "a quantizer has one value more than thresholds"
            raise ConversionError(what, got=self.values.shape)
        steps = np.diff(self.thresholds, axis=0)
        if not np.all(steps >= 0 if self.has_own_thresholds else steps > 0):
            raise ConversionError("thresholds of a quantizer must ascend", got=self.thresholds)
        return TensorType(operands[0].shape, F32)

    def compute(self, operands: list[Array]) -> Array:
        x = as_float(operands[0])
        reached: Array
        if self.has_own_thresholds:
            reached = sum((x >= row for row in self.thresholds), np.zeros(x.shape, np.int32))
        else:
            reached = np.searchsorted(self.thresholds, x, side="right")
        chosen: Array = self.values[reached]
        return chosen

    def borders(self, value: Array) -> FloatArray:
        """How far each value is from the nearest threshold."""
        distances = (np.abs(as_float(value) - row) for row in self.thresholds)
        return reduce(np.minimum, distances)

    def levels(self) -> FloatArray:
        return self.values
