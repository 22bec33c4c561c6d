"""Candidates that take turns, and a fixed loop that tells how steady the machine was meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from phonebit.compiled import load_runtime

NOISE_LIMIT: Final = 1.15
"""A round counts as disturbed where the loop takes longer than this times its minimum."""
MIN_STEADY: Final = 3
"""With fewer undisturbed rounds than this all are used."""
LOOPS: Final = 12_000_000
"""Take some 20 ms: long enough that other processes have their turns in it, too."""
TOTAL: Final = "total"
"""Name of the only time of candidates that have no layers."""

Times = dict[str, float]
"""Milliseconds by name of a layer."""


@dataclass(frozen=True)
class Rounds:
    """What was measured: round by round, each candidate once."""

    # By candidate, one dictionary a round; a candidate that failed has none.
    times: dict[str, list[Times]]
    noise_ms: list[float]  # one time per round, the longer one before and after it, of the loop
    # By candidate, what its turn raised.
    failures: dict[str, Exception] = field(default_factory=dict)

    @property
    def steady(self) -> list[int]:
        """Numbers of the rounds in which the loop was near its minimum."""
        limit = NOISE_LIMIT * min(self.noise_ms, default=0)
        return [index for index, value in enumerate(self.noise_ms) if value <= limit]

    @property
    def counted(self) -> list[int]:
        """Numbers of the rounds that count: the steady ones, or all if hardly any is steady."""
        every = list(range(len(self.noise_ms)))
        return self.steady if len(self.steady) >= MIN_STEADY else every

    def spread(self, candidate: str) -> dict[str, dict[str, float]]:
        """By layer, in order: median_ms, p10_ms and p90_ms over the rounds that count."""
        rounds = [self.times[candidate][index] for index in self.counted]
        result = {}
        for layer in rounds[0]:
            values = [one[layer] for one in rounds]
            low, middle, high = (float(np.percentile(values, share)) for share in (10, 50, 90))
            result[layer] = {"median_ms": middle, "p10_ms": low, "p90_ms": high}
        return result

    def summary(self, candidate: str, reference: str) -> dict[str, float]:
        """A total's numbers: spread, minimum, and the median of its ratios to the reference's."""
        times = [self.times[candidate][index][TOTAL] for index in self.counted]
        row = {**self.spread(candidate)[TOTAL], "min_ms": min(times)}
        if reference in self.times:
            others = [self.times[reference][index][TOTAL] for index in self.counted]
            row["ratio"] = float(np.median(np.divide(times, others)))
        return row

    def describe(self) -> dict[str, Any]:
        """How the rounds went, JSON-ready."""
        noise = self.noise_ms or [1]  # without candidates there are no rounds
        return {
            "rounds": len(self.noise_ms),
            "steady": len(self.steady),
            "counted": len(self.counted),
            "canary_max_over_min": max(noise) / min(noise),
            "canary_limit": NOISE_LIMIT,
        }


def loop_ms() -> float:
    """Time of a loop that always does the same: it slows down only if the machine does."""
    return float(load_runtime().fixed_loop_ms(LOOPS))


def take_turns(
    candidates: Mapping[str, Callable[[], Times]],
    rounds: int,
    *,
    maximum: int = 0,
    budget_s: float = 0,
    expected: tuple[type[Exception], ...] = (),
    noise_ms: Callable[[], float] = loop_ms,
    clock: Callable[[], float] = time.monotonic,
) -> Rounds:
    """Runs every candidate once a round: A B C A B C ...

    There are so many rounds at least, and ``most`` until the budget is used up. A candidate that
    raises what is ``expected`` leaves, the others go on.
    """
    times: dict[str, list[Times]] = {name: [] for name in candidates}
    failures: dict[str, Exception] = {}
    end = clock() + budget_s
    around = [noise_ms()]
    while times and (len(around) <= rounds or (len(around) <= maximum and clock() < end)):
        for name in list(times):
            try:
                times[name].append(candidates[name]())
            except expected as error:
                failures[name] = error
                del times[name]
        around.append(noise_ms())
    return Rounds(times, [max(pair) for pair in pairwise(around)], failures)
