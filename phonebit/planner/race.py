"""Whole networks in turns: a plan must not lose to one of its processors alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final, Protocol

from phonebit.planner.canary import Canary
from phonebit.planner.plan import Processor

WARM_UPS: Final = 2
ROUNDS: Final = 25
FEWEST_ROUNDS: Final = 5


class Contestant(Protocol):
    """What the compiled runtime offers for a network on any device."""

    def forward(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Runs a batch."""


@dataclass(frozen=True)
class Race:
    """Milliseconds of one image, medians.

    Args:
        plan_ms: Of the plan.
        cpu_ms: Of the CPU alone.
        gpu_ms: Of the GPU alone.
    """

    plan_ms: float
    cpu_ms: float
    gpu_ms: float

    @property
    def is_won(self) -> bool:
        """Whether the plan is no slower than the better processor alone."""
        return self.plan_ms <= min(self.cpu_ms, self.gpu_ms)


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
    return Race(**{name: median(of) for name, of in times.items()})


def _forward_ms(contestant: Contestant, inputs: Sequence[Any]) -> float:
    """Of the second of two: the first finds the other contestants' weights in the caches."""
    contestant.forward(inputs)
    start = time.perf_counter()
    contestant.forward(inputs)
    return 1e3 * (time.perf_counter() - start)
