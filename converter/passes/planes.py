"""Values that are sums of bit-planes: the common form of all that binary convolutions read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import FloatArray, Graph
from phonebit.converter.ops import PlaneSum, Quantize
from phonebit.converter.passes.two_valued import RELATIVE_SPREAD
from phonebit.format.records import DataType

MAX_PLANES = 15
"""A value of 16 levels, 4 bits. Beyond, as many xor-popcounts cost more than they save."""
ROUNDING = 1e-6
"""Relative error of a level's number that float32 arithmetic on its value explains."""


@dataclass(frozen=True)
class Planes:
    """A value as offset[c] + sum over i of scales[i, c] * bits_i, with bits of -1/+1.

    ``bits`` are names of BIT values; the rest is as in PlaneSum.
    """

    bits: list[str]
    scales: FloatArray
    offset: NDArray[np.floating]
    binary: bool = False

    @property
    def count(self) -> int:
        """How many planes."""
        return len(self.bits)

    @property
    def units(self) -> NDArray[np.int64]:
        """What the planes count, in multiples of one scale."""
        return 2 ** np.arange(self.count) if self.binary else np.ones(self.count, np.int64)

    @property
    def levels(self) -> FloatArray:
        """What each level is worth, shape (levels, C).

        Level k of a thermometer has the first k bits set, a binary one the bits of k.
        """
        if self.binary:
            codes = np.arange(2**self.count)[:, None]
            signs = np.where(codes & self.units, 1.0, -1.0)
            exact: FloatArray = (signs @ self.scales.astype(np.float64) + self.offset).astype(
                np.float32
            )
            return exact
        steps = np.concatenate([-self.scales.sum(axis=0, keepdims=True), 2 * self.scales])
        total: FloatArray = (np.cumsum(steps, axis=0) + self.offset).astype(np.float32)
        return total

    def with_levels(self, levels: FloatArray) -> PlaneSum | None:
        """The sum whose levels are worth something else; None if the planes cannot express it."""
        if not self.binary:
            return PlaneSum(*from_levels(levels))
        found = binary_sum(levels.astype(np.float64)[0], levels.astype(np.float64)[-1], self.count)
        given = replace(self, scales=found.scales, offset=found.offset).levels
        spread = RELATIVE_SPREAD * np.abs(found.scales).sum(axis=0)
        return found if np.all(np.abs(given - levels) <= spread) else None


def planes_of(graph: Graph, value: str) -> Planes | None:
    """The planes of a value: a BIT value is its own, one plane; None if it has none."""
    kind = graph.types[value]
    if kind.dtype == DataType.BIT:
        channels = kind.shape[2]
        return Planes([value], np.ones((1, channels), np.float32), np.zeros(channels, np.float32))
    node = graph.producer(value)
    if not isinstance(node.op, PlaneSum):
        return None
    return Planes(list(node.inputs), node.op.scales, node.op.offset, node.op.binary)


def binary_sum(low: NDArray[np.float64], high: NDArray[np.float64], count: int) -> PlaneSum:
    """The sum of ``count`` binary planes that is low[c] where no bit is set, high[c] where all are.

    The value is low + s * sum of 2^i (b_i + 1) / 2, with s = (high - low) / (2^count - 1). A level
    of 0 (and 0 half-way between two) is exactly that: the offset is a multiple of the rounded s.
    """
    maximum = 2**count - 1
    step = (high - low) / maximum
    scales = (step * 2.0 ** np.arange(-1, count - 1)[:, None]).astype(np.float32)
    zero = -low / np.where(step, step, 1)
    whole = np.round(2 * zero) / 2
    zero = np.where(np.abs(zero - whole) <= ROUNDING * np.maximum(1, whole), whole, zero)
    offset = np.where(step, scales[0].astype(np.float64) * (maximum - 2 * zero), low)
    return PlaneSum(scales, offset, binary=True)


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
