"""Mean over windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from phonebit.converter.ir import Array, Window
from phonebit.converter.ops.base import F32, as_float
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.ops.with_epilogue import PoolOperator
from phonebit.converter.records import RecordReader
from phonebit.converter.reference.convolution import pad_map
from phonebit.format.records import OpKind

BLOCK_TAPS: Final = 14
"""Taps whose plain sum is a block; docs/format.md, "Averages", says why so many."""


@dataclass
class AveragePool2D(PoolOperator):
    """Mean over the taps inside the map: the sum of blocks of them, divided by their number.

    A block is as many rows of the window as have BLOCK_TAPS taps or fewer, or BLOCK_TAPS columns
    of one row. The taps of a block are added in row-major order; blocks are added in that order,
    too, and what each of these additions rounds off is added to the next block.
    """

    kinds = (OpKind.AVERAGE_POOL2D,)
    reads = (F32,)
    window: Window
    epilogue: Epilogue = field(default_factory=Epilogue)

    def compute(self, main: Array) -> Array:
        x = as_float(main)
        taps = _taps(pad_map(x, self.window, 0.0), self.window)
        ones = np.ones((1, *x.shape[1:3], 1), np.float32)
        inside = _taps(pad_map(ones, self.window, 0.0), self.window)
        with np.errstate(over="ignore", invalid="ignore"):
            mean: Array = _blocked_sum(taps) / inside.sum(axis=(4, 5))
        return mean

    def makes_zeros(self, inputs: list[bool]) -> bool:
        return inputs[0]

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.window())


def _taps(padded: Array, window: Window) -> Array:
    """A view of shape (N, Ho, Wo, C, KH, KW)."""
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilation, strict=True)]
    views = sliding_window_view(padded, spans, axis=(1, 2))
    (down, right), (dilation_h, dilation_w) = window.strides, window.dilation
    return views[:, ::down, ::right, :, ::dilation_h, ::dilation_w]


def _blocked_sum(taps: Array) -> Array:
    """Over the last two axes. Padded taps are zeros, which change neither sum nor rest."""
    kernel_h, kernel_w = taps.shape[4:]
    total = np.zeros(taps.shape[:4], np.float32)
    rest = np.zeros_like(total)
    rows = max(1, BLOCK_TAPS // kernel_w)
    for top in range(0, kernel_h, rows):
        blocks = np.zeros((-(-kernel_w // BLOCK_TAPS), *total.shape), np.float32)
        for kh in range(top, min(top + rows, kernel_h)):
            for kw in range(min(BLOCK_TAPS, kernel_w)):
                columns = np.moveaxis(taps[..., kh, kw::BLOCK_TAPS], -1, 0)
                blocks[: len(columns)] += columns
        for block in blocks:
            total, rest = _added(total, block + rest)
    return total


def _added(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum, and what rounding it took away; 0 where the sum is not finite."""
    total = a + b
    of_b = total - a
    rest = (a - (total - of_b)) + (b - of_b)  # Knuth's two-sum: exact
    return total, np.where(rest == rest, rest, np.float32(0))
