"""Exact integer thresholds: the accumulator at which a chain of float32 steps changes its sign.

The textbook form (PhoneBit, section V-A) solves gamma * (x - mean) / sigma + beta >= 0 for x and
rounds. Rounding the solution is wrong wherever float32 arithmetic decides differently next to it.
Here the chain itself, in the interpreter's float32, is asked at every accumulator that the layer
can reach; the threshold is where the answers change, so both agree by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ops import Conv2D
from phonebit.converter.ops.convolution import Convolution

Decide = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Accumulators of shape (A, C) to decisions of the same shape."""

CHUNK_ELEMENTS: Final = 1 << 20
MAX_EVALUATIONS: Final = 1 << 26
"""Above this many (accumulator, channel) pairs, provably monotone chains are bisected instead."""


@dataclass(frozen=True)
class Reach:
    """The integers that an accumulator can take: low, low + step, ... high."""

    low: int
    high: int
    step: int

    @property
    def count(self) -> int:
        """How many integers these are."""
        return (self.high - self.low) // self.step + 1


@dataclass
class Thresholds:
    """bit = (-acc if negate[c] else acc) >= threshold[c], for every channel not in ``mixed``.

    ``mixed`` lists channels whose decision changes more than once: no threshold can express them.
    """

    threshold: NDArray[np.int32]
    negate: NDArray[np.bool_]
    mixed: list[int]


def reach_of(op: Convolution) -> Reach:
    """The accumulators of an integer convolution.

    K taps of -1/+1 sum to K, K - 2, ... -K. A tap that counts as 0 (zero padding) changes the
    parity, so then every integer between occurs. With u8 inputs, a tap is at most
    max|mul * x + add|.
    """
    zero_padded = any(op.window.pads) and op.pad_value == 0
    every = isinstance(op, Conv2D) or zero_padded
    return Reach(-op.largest_sum, op.largest_sum, 1 if every else 2)


def find_thresholds(
    decide: Decide, reach: Reach, channels: int, monotone: bool
) -> Thresholds | None:
    """Finds the threshold of every channel.

    Args:
        decide: The chain.
        reach: Accumulators at which threshold and chain must agree.
        channels: C.
        monotone: Whether the chain is proven monotone, so that bisection may be used.

    Returns:
        The thresholds; None if the range is too large to try out and nothing is proven.
    """
    if reach.count * channels <= MAX_EVALUATIONS:
        return _by_exhaustion(decide, reach, channels)
    return _by_bisection(decide, reach, channels) if monotone else None


def _by_exhaustion(decide: Decide, reach: Reach, channels: int) -> Thresholds:
    rows = max(1, CHUNK_ELEMENTS // channels)
    every = np.arange(reach.low, reach.high + 1, reach.step, dtype=np.int64)
    first = previous = np.zeros(channels, np.bool_)
    changes = np.zeros(channels, np.int64)
    crossing = np.full(channels, reach.low, np.int64)
    for begin in range(0, reach.count, rows):
        accumulators = every[begin : begin + rows]
        decisions = decide(np.repeat(accumulators[:, None], channels, axis=1))
        if begin == 0:
            first = previous = decisions[0]
        before = np.concatenate([previous[None], decisions[:-1]])
        changed = before != decisions
        changes += changed.sum(axis=0)
        crossing = np.where(changed.any(axis=0), accumulators[changed.argmax(axis=0)], crossing)
        previous = decisions[-1]
    mixed = np.flatnonzero(changes > 1).tolist()
    return _assemble(reach, first, previous, crossing, mixed)


def _by_bisection(decide: Decide, reach: Reach, channels: int) -> Thresholds:
    """Per channel, halves an interval whose ends decide differently until they are neighbours."""
    low = np.zeros(channels, np.int64)
    high = np.full(channels, reach.count - 1, np.int64)

    def at(index: NDArray[np.int64]) -> NDArray[np.bool_]:
        row: NDArray[np.bool_] = decide((reach.low + index * reach.step)[None])[0]
        return row

    first, last = at(low), at(high)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        same_as_first = at(middle) == first
        low = np.where(same_as_first, middle, low)
        high = np.where(same_as_first, high, middle)
    return _assemble(reach, first, last, reach.low + high * reach.step, [])


def _assemble(
    reach: Reach,
    first: NDArray[np.bool_],
    last: NDArray[np.bool_],
    crossing: NDArray[np.int64],
    mixed: list[int],
) -> Thresholds:
    """From the decisions at both ends and the first accumulator after the change.

    Falling channels (true up to crossing - step): negating the filter's weights negates its
    accumulator, and acc <= a is -acc >= -a.
    """
    falling = first & ~last
    threshold = np.where(falling, -(crossing - reach.step), crossing)
    threshold = np.where(first & last, reach.low, threshold)
    threshold = np.where(~first & ~last, reach.high + 1, threshold)
    return Thresholds(threshold.astype(np.int32), falling, mixed)
