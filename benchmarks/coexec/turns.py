"""Candidates that take turns for a given time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from typing import Any, Final

from benchmarks.rounds import TOTAL, take_turns
from phonebit.planner import Processor
from phonebit.planner.measure.measuring import NoiseProbe

MAX_ROUNDS: Final = 200
MIN_ROUNDS: Final = 20
WARM_UP_S: Final = 0.02
"""Of calls that do not count, at least, before one that does."""
COUNTED_S: Final = 0.01
"""Of calls that count, of which the median is the turn's: single ones on many cores differ by a
tenth."""
PROBE_S: Final = 0.04
"""What a turn, and a round, waits for the noise probe, about."""
PROBES: Final = 50
"""Of the probe per round, some 10 ms: where cores are shared, a few may have them alone."""


class Budget:
    """Seconds that an experiment may take, counted from now on."""

    def __init__(self, seconds: float) -> None:
        """Begins to count."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds left, 0 at least."""
        return max(0.0, self._end - time.monotonic())

    @property
    def used_s(self) -> float:
        """Seconds since the beginning."""
        return self.seconds - (self._end - time.monotonic())

    def share(self, items_left: int) -> Budget:
        """An equal share of what is left, for the next of some items."""
        return Budget(self.left_s / max(1, items_left))


def timed(call: Callable[[], object], probe: NoiseProbe) -> Callable[[], dict[str, float]]:
    """A candidate: typical milliseconds of a call while all cores of the testbed are undisturbed.

    Calls that do not count come before: they find the others' weights in the caches, and a
    processor that slept while another candidate left it idle.
    """

    def turn() -> dict[str, float]:
        end = time.perf_counter() + WARM_UP_S
        while time.perf_counter() < end:
            call()
        return {TOTAL: probe.measure_quietly(tuple(Processor), counted)}

    def counted() -> float:
        call()  # the probe's weights are in the caches
        ends = [first := time.perf_counter()]
        while len(ends) < 2 or ends[-1] < first + COUNTED_S:
            call()
            ends.append(time.perf_counter())
        return median(end - begin for begin, end in pairwise(ends)) * 1e3

    return turn


def compete(
    calls: Mapping[str, Callable[[], object]], probe: NoiseProbe, budget: Budget
) -> dict[str, Any]:
    """Times calls A B C A B C ..., as often as the budget allows, but for some rounds at least."""
    for _ in range(2):  # nobody's first pass counts
        begin = time.perf_counter()
        for call in calls.values():
            call()
    turn_s = WARM_UP_S + COUNTED_S + PROBE_S
    round_s = 3 * (time.perf_counter() - begin) + len(calls) * turn_s + PROBE_S
    count = int(min(MAX_ROUNDS, max(MIN_ROUNDS, budget.left_s / round_s)))
    rounds = take_turns(
        {name: timed(call, probe) for name, call in calls.items()},
        count,
        noise_ms=lambda: median(probe.layer().total_us for _ in range(PROBES)) / 1e3,
    )
    times = {name: rounds.spread(name)[TOTAL] for name in rounds.times}
    return {"times": times, **rounds.describe()}
