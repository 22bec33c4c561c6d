"""Contestants that take turns, and a fixed loop that tells how steady the machine was meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

CANARY_LIMIT: Final = 1.15
"""A round counts as disturbed where the canary takes longer than this times its minimum."""
LEAST_ROUNDS: Final = 3
"""With fewer undisturbed rounds than this all are used."""
CANARY_LOOPS: Final = 400_000
"""Take some 20 ms: long enough that other processes have their turns in it, too."""

Times = dict[str, float]
"""Milliseconds by name of a layer."""


@dataclass(frozen=True)
class Rounds:
    """What was measured: round by round, each contestant once.

    Attributes:
        times: by contestant, one dictionary a round.
        canary_ms: one time a round, the longer one before and after it, of a loop that has nothing
            to do with the contestants.
    """

    times: dict[str, list[Times]]
    canary_ms: list[float]

    @property
    def steady(self) -> list[int]:
        """Numbers of the rounds in which the canary was near its minimum."""
        limit = CANARY_LIMIT * min(self.canary_ms)
        return [index for index, value in enumerate(self.canary_ms) if value <= limit]

    @property
    def counted(self) -> list[int]:
        """Numbers of the rounds that count: the steady ones, or all if hardly any is steady."""
        steady = self.steady
        return steady if len(steady) >= LEAST_ROUNDS else list(range(len(self.canary_ms)))

    def spread(self, contestant: str) -> dict[str, dict[str, float]]:
        """By layer, in order: median_ms, p10_ms and p90_ms over the rounds that count."""
        rounds = [self.times[contestant][index] for index in self.counted]
        result = {}
        for layer in rounds[0]:
            values = [one[layer] for one in rounds]
            low, middle, high = (float(np.percentile(values, share)) for share in (10, 50, 90))
            result[layer] = {"median_ms": middle, "p10_ms": low, "p90_ms": high}
        return result

    def describe(self) -> dict[str, Any]:
        """How the rounds went, JSON-ready."""
        return {
            "rounds": len(self.canary_ms),
            "steady": len(self.steady),
            "counted": len(self.counted),
            "canary_max_over_min": max(self.canary_ms) / min(self.canary_ms),
            "canary_limit": CANARY_LIMIT,
        }


def take_turns(contestants: Mapping[str, Callable[[], Times]], rounds: int) -> Rounds:
    """Runs every contestant once a round: A B C A B C ...

    Args:
        contestants: by name, what measures itself once.
        rounds: how many.
    """
    times: dict[str, list[Times]] = {name: [] for name in contestants}
    canary = [_canary_ms()]
    for _ in range(rounds):
        for name, measure in contestants.items():
            times[name].append(measure())
        canary.append(_canary_ms())
    return Rounds(times, [max(pair) for pair in pairwise(canary)])


def _canary_ms() -> float:
    """Time of a loop that always does the same: it slows down only if the machine does."""
    begin = time.perf_counter()
    total = 0
    for index in range(CANARY_LOOPS):
        total += index & 7
    return (time.perf_counter() - begin) * 1e3
