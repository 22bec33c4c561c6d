"""Values that are sums of planes of bits: the common form of all that binary convolutions read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import FloatArray, Graph
from phonebit.converter.ops import PlaneSum, Quantize
from phonebit.format.records import DataType

MAX_PLANES = 15
"""A value of 16 levels, 4 bits. Beyond, as many xor-popcounts cost more than they save."""


@dataclass(frozen=True)
class Planes:
    """A value as offset[c] + sum over i of scales[i, c] * bits_i, with bits of -1/+1.

    ``bits`` are names of BIT values; ``scales`` has shape (planes, C), ``offset`` (C,).
    """

    bits: list[str]
    scales: FloatArray
    offset: FloatArray

    @property
    def count(self) -> int:
        """How many planes."""
        return len(self.bits)

    @property
    def levels(self) -> FloatArray:
        """What each level is worth, shape (planes + 1, C): level k has the first k bits set."""
        steps = np.concatenate([-self.scales.sum(axis=0, keepdims=True), 2 * self.scales])
        total: FloatArray = (np.cumsum(steps, axis=0) + self.offset).astype(np.float32)
        return total

    @property
    def lowest(self) -> FloatArray:
        """What the value is where no bit is set, (C,)."""
        lowest: FloatArray = self.levels[0]
        return lowest

    @property
    def highest(self) -> FloatArray:
        """What the value is where all bits are set, (C,)."""
        highest: FloatArray = self.levels[-1]
        return highest


def planes_of(graph: Graph, value: str) -> Planes | None:
    """The planes of a value: a BIT value is its own, one plane; None if it has none."""
    kind = graph.types[value]
    if kind.dtype == DataType.BIT:
        channels = kind.shape[2]
        return Planes([value], np.ones((1, channels), np.float32), np.zeros(channels, np.float32))
    node = graph.producer(value)
    if not isinstance(node.op, PlaneSum):
        return None
    return Planes(list(node.inputs), node.op.scales, node.op.offset)


def from_levels(levels: NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
    """(scales, offset) of planes whose level k is worth levels[k, c]; shape (planes + 1, C).

    Level k has k bits of +1, so from one level to the next the sum grows by twice the next scale;
    the mean of lowest and highest level is what remains when all bits cancel.
    """
    exact = levels.astype(np.float64)
    scales = np.diff(exact, axis=0) / 2
    offset = (exact[0] + exact[-1]) / 2
    return scales.astype(np.float32), offset.astype(np.float32)


def planes_of_quantizer(op: Quantize, channels: int) -> tuple[FloatArray, FloatArray]:
    """(scales, offset) of a quantizer's planes for each of ``channels`` channels."""
    levels = np.repeat(op.values[:, None], channels, axis=1)
    return from_levels(levels)
