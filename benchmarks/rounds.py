"""Contestants that take turns, and a fixed loop that tells how steady the machine was meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

CANARY_LIMIT: Final = 1.15
"""A round counts as disturbed where the canary takes longer than this times its minimum."""
LEAST_STEADY: Final = 3
"""With fewer undisturbed rounds than this all are used."""
CANARY_LOOPS: Final = 400_000
"""Take some 20 ms: long enough that other processes have their turns in it, too."""
TOTAL: Final = "total"
"""Name of the only time of contestants that have no layers."""

Times = dict[str, float]
"""Milliseconds by name of a layer."""


@dataclass(frozen=True)
class Rounds:
    """What was measured: round by round, each contestant once."""

    # By contestant, one dictionary a round; a contestant that failed has none.
    times: dict[str, list[Times]]
    canary_ms: list[float]  # one time a round, the longer one before and after it, of the loop
    # By contestant, what its turn raised.
    failures: dict[str, Exception] = field(default_factory=dict)

    @property
    def steady(self) -> list[int]:
        """Numbers of the rounds in which the canary was near its minimum."""
        limit = CANARY_LIMIT * min(self.canary_ms, default=0)
        return [index for index, value in enumerate(self.canary_ms) if value <= limit]

    @property
    def counted(self) -> list[int]:
        """Numbers of the rounds that count: the steady ones, or all if hardly any is steady."""
        every = list(range(len(self.canary_ms)))
        return self.steady if len(self.steady) >= LEAST_STEADY else every

    def spread(self, contestant: str) -> dict[str, dict[str, float]]:
        """By layer, in order: median_ms, p10_ms and p90_ms over the rounds that count."""
        rounds = [self.times[contestant][index] for index in self.counted]
        result = {}
        for layer in rounds[0]:
            values = [one[layer] for one in rounds]
            low, middle, high = (float(np.percentile(values, share)) for share in (10, 50, 90))
            result[layer] = {"median_ms": middle, "p10_ms": low, "p90_ms": high}
        return result

    def summary(self, contestant: str, reference: str) -> dict[str, float]:
        """A total's numbers: spread, minimum, and the median of its ratios to the reference's."""
        times = [self.times[contestant][index][TOTAL] for index in self.counted]
        row = {**self.spread(contestant)[TOTAL], "min_ms": min(times)}
        if reference in self.times:
            others = [self.times[reference][index][TOTAL] for index in self.counted]
            row["ratio"] = float(np.median(np.divide(times, others)))
        return row

    def describe(self) -> dict[str, Any]:
        """How the rounds went, JSON-ready."""
        canary = self.canary_ms or [1]  # without contestants there are no rounds
        return {
            "rounds": len(self.canary_ms),
            "steady": len(self.steady),
            "counted": len(self.counted),
            "canary_max_over_min": max(canary) / min(canary),
            "canary_limit": CANARY_LIMIT,
        }


def canary_ms() -> float:
    """Time of a loop that always does the same: it slows down only if the machine does."""
    begin = time.perf_counter()
    total = 0
    for index in range(CANARY_LOOPS):
        total += index & 7
    return (time.perf_counter() - begin) * 1e3


def take_turns(
    contestants: Mapping[str, Callable[[], Times]],
    rounds: int,
    *,
    most: int = 0,
    budget_s: float = 0,
    expected: tuple[type[Exception], ...] = (),
    canary: Callable[[], float] = canary_ms,
    clock: Callable[[], float] = time.monotonic,
) -> Rounds:
    """Runs every contestant once a round: A B C A B C ...

    There are so many rounds at least, and ``most`` until the budget is used up. A contestant that
    raises what is ``expected`` leaves, the others go on.
    """
    times: dict[str, list[Times]] = {name: [] for name in contestants}
    failures: dict[str, Exception] = {}
    end = clock() + budget_s
    around = [canary()]
    while times and (len(around) <= rounds or (len(around) <= most and clock() < end)):
        for name in list(times):
            try:
                times[name].append(contestants[name]())
            except expected as error:
                failures[name] = error
                del times[name]
        around.append(canary())
    return Rounds(times, [max(pair) for pair in pairwise(around)], failures)
