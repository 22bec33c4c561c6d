"""A few values in place of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phonebit.converter.ir import Array, FloatArray, TensorType
from phonebit.converter.ops.base import F32, ValueOperator, as_float
from phonebit.errors import ConversionError


@dataclass
class Quantize(ValueOperator):
    """Source only. A value becomes one of a few: values[number of thresholds t with v >= t].

    ``thresholds`` ascend, shape (n,); ``values`` have shape (n + 1,), the lowest first. torch.sign,
    whose 0 stays 0, is thresholds (0, SMALLEST), values (-1, 0, 1); a bare sign with sign(0) = +1
    is the operator Sign instead. What a network counts as an exact zero is decided by
    ``passes/decide_zeros.py``.
    """

    thresholds: FloatArray
    values: FloatArray

    def value_type(self, operands: list[TensorType]) -> TensorType:
        count = self.thresholds.size
        if self.thresholds.shape != (count,) or self.values.shape != (count + 1,) or not count:
            what = "a quantizer has one value more than thresholds"
            raise ConversionError(what, got=self.values.shape)
        if not np.all(np.diff(self.thresholds) > 0):
            raise ConversionError("thresholds of a quantizer must ascend", got=self.thresholds)
        return TensorType(operands[0].shape, F32)

    def compute(self, operands: list[Array]) -> Array:
        reached = np.searchsorted(self.thresholds, as_float(operands[0]), side="right")
        chosen: Array = self.values[reached]
        return chosen

    def levels(self) -> FloatArray:
        return self.values
