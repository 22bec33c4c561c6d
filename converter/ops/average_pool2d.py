"""Mean over windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Window
from phonebit.converter.ops.base import F32, as_float
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.ops.with_epilogue import PoolOperator
from phonebit.converter.records import RecordReader
from phonebit.converter.reference.convolution import pad_map, tap_view
from phonebit.format.records import OpKind


@dataclass
class AveragePool2D(PoolOperator):
    """Mean over the taps inside the map: their sum in row-major order, divided by their number."""

    kinds = (OpKind.AVERAGE_POOL2D,)
    reads = (F32,)
    window: Window
    epilogue: Epilogue = field(default_factory=Epilogue)

    def compute(self, main: Array) -> Array:
        x, window = as_float(main), self.window
        size = window.output_size(x.shape[1], x.shape[2])
        padded = pad_map(x, window, 0.0)
        inside = pad_map(np.ones((1, *x.shape[1:3], 1), np.float32), window, 0.0)
        total = np.zeros((x.shape[0], *size, x.shape[3]), np.float32)
        count = np.zeros((1, *size, 1), np.float32)
        for kh, kw in np.ndindex(window.kernel):
            total += tap_view(padded, window, size, kh, kw)
            count += tap_view(inside, window, size, kh, kw)
        return total / count

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return inputs[0]

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.window())
