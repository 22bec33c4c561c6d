"""Engines in turn, A B C A B C ..., and what their times say.

A loop of fixed work, the canary, is timed before and after each round: rounds in which either took
15 % longer than the canary's best were disturbed by something else on the machine and do not count.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

LEAST_ROUNDS: Final = 5
MOST_ROUNDS: Final = 40
LEAST_QUIET_ROUNDS: Final = 3
"""With fewer, all rounds count, and the result says so."""
CANARY_LIMIT: Final = 1.15
CANARY_BLOCK: Final = bytes(1 << 18)
CANARY_REPEATS: Final = 64

Turn = Callable[[], Sequence[float]]
"""Times of one engine's turn, in ms; raises to leave the rounds."""


@dataclass
class Rounds:
    """What was measured.

    Attributes:
        times_ms: by engine, one a round; an engine that failed has none.
        canary_ms: one before each round and one after the last.
        failures: by engine, what its turn raised.
    """

    times_ms: dict[str, list[float]] = field(default_factory=dict)
    canary_ms: list[float] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Of the rounds."""
        return max(len(self.canary_ms) - 1, 0)

    def quiet(self) -> list[int]:
        """Rounds with a good canary on both sides."""
        limit = CANARY_LIMIT * min(self.canary_ms, default=0)
        good = [ms <= limit for ms in self.canary_ms]
        return [index for index in range(self.count) if good[index] and good[index + 1]]

    @property
    def is_quiet(self) -> bool:
        """Whether enough rounds were quiet to count those alone."""
        return len(self.quiet()) >= LEAST_QUIET_ROUNDS

    def counted(self) -> list[int]:
        """The quiet rounds, or all of them if too few were."""
        return self.quiet() if self.is_quiet else list(range(self.count))

    def summary(self, name: str, reference: str) -> dict[str, Any]:
        """An engine's numbers: median, spread, and the median of its ratios to the reference."""
        rounds = self.counted()
        times = [self.times_ms[name][index] for index in rounds]
        row: dict[str, Any] = {
            "median_ms": statistics.median(times),
            "min_ms": min(times),
            "p10_ms": percentile(times, 10),
            "p90_ms": percentile(times, 90),
        }
        if reference in self.times_ms:
            others = [self.times_ms[reference][index] for index in rounds]
            ratios = [mine / other for mine, other in zip(times, others, strict=True)]
            row["ratio"] = statistics.median(ratios)
        return row


def take_turns(
    turns: Mapping[str, Turn],
    budget_s: float,
    expected: type[Exception],
    canary: Callable[[], float] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Rounds:
    """Rounds until the time is used up, at least ``LEAST_ROUNDS``, at most ``MOST_ROUNDS``.

    Args:
        turns: by engine.
        budget_s: time for all rounds.
        expected: what an engine that fails raises; it leaves, the others go on.
        canary: times the fixed work, in ms; ``hashing_ms`` if not given.
        clock: of the budget, in s.
    """
    rounds = Rounds({name: [] for name in turns})
    time_canary = canary or hashing_ms
    end = clock() + budget_s
    count = 0
    while rounds.times_ms and (count < LEAST_ROUNDS or (count < MOST_ROUNDS and clock() < end)):
        rounds.canary_ms.append(time_canary())
        for name in list(rounds.times_ms):
            try:
                rounds.times_ms[name].append(statistics.median(turns[name]()))
            except expected as error:
                rounds.failures[name] = error
                del rounds.times_ms[name]
        count += 1
    rounds.canary_ms.append(time_canary())
    return rounds


def hashing_ms() -> float:
    """Time of hashing a block that fits the second-level cache, about 10 ms on one core.

    Shorter loops would slip between the moments in which something else has the core.
    """
    begin = time.perf_counter()
    digest = hashlib.sha256()
    for _ in range(CANARY_REPEATS):
        digest.update(CANARY_BLOCK)
    return (time.perf_counter() - begin) * 1e3


def percentile(values: Sequence[float], percent: int) -> float:
    """By linear interpolation between order statistics."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
