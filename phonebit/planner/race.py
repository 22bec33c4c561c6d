"""Whole networks in turns: a plan must not lose to one of its processors alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from typing import Any, Final, Protocol

from phonebit.planner.canary import Canary
from phonebit.planner.plan import Processor

WARM_UPS: Final = 2
ROUNDS: Final = 25
FEWEST_ROUNDS: Final = 5
WON_SHARE: Final = 0.75
"""Of the rounds. On a shared machine a median that is a little better is often chance, and a plan
that wins by chance is slower than one processor for as long as its file lives."""


class Contestant(Protocol):
    """What the compiled runtime offers for a network on any device."""

    def forward(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Runs a batch."""


@dataclass(frozen=True)
class Race:
    """How it went.

    Args:
        plan_ms: Milliseconds of one image by the plan, median.
        cpu_ms: By the CPU alone.
        gpu_ms: By the GPU alone.
        won_share: Of the rounds, in which the plan was no slower than either processor alone.
    """

    plan_ms: float
    cpu_ms: float
    gpu_ms: float
    won_share: float

    @property
    def is_won(self) -> bool:
        """Whether the plan is the fastest, and not by chance."""
        return self.won_share >= WON_SHARE


def race(
    canary: Canary,
    plan: Contestant,
    cpu: Contestant,
    gpu: Contestant,
    inputs: Sequence[Any],
    limit_s: float = 10.0,
) -> Race:
    """Lets all three run in turns.

    Args:
        canary: Of both processors.
        plan: The network on both processors.
        cpu: On the CPU alone.
        gpu: On the GPU alone.
        inputs: One image for each input.
        limit_s: No round begins after so many seconds, if there were five.
    """
    contestants: Mapping[str, Contestant] = {"plan_ms": plan, "cpu_ms": cpu, "gpu_ms": gpu}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    begin = time.perf_counter()
    for turn in range(-WARM_UPS, ROUNDS):
        if turn >= FEWEST_ROUNDS and time.perf_counter() - begin > limit_s:
            break
        for name, contestant in contestants.items():
            ms = canary.measure_quietly(tuple(Processor), partial(_forward_ms, contestant, inputs))
            if turn >= 0:
                times[name].append(ms)
    won = [ms <= min(others) for ms, *others in zip(*times.values(), strict=True)]
    return Race(**{name: median(of) for name, of in times.items()}, won_share=mean(won))


def _forward_ms(contestant: Contestant, inputs: Sequence[Any]) -> float:
    """Of the second of two: the first finds the other contestants' weights in the caches."""
    contestant.forward(inputs)
    start = time.perf_counter()
    contestant.forward(inputs)
    return 1e3 * (time.perf_counter() - start)
