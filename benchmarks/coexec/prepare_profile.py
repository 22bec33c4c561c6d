"""The device profile of a testbed: samples collected and predictors trained in there.

    python -m benchmarks.coexec.prepare_profile --testbed g1c1-avx2 --budget-s 900

`phonebit collect` for one CPU thread, for three and for all cores, then `phonebit train-predictor`.
The time is the limit: collecting is interrupted when its share of the budget is over, and goes on
there when started again with --again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any, Final

from benchmarks.coexec.experiment import SEED, Bench, main
from benchmarks.coexec.layers import cpu_threads
from benchmarks.coexec.turns import Budget
from phonebit.planner.cost_models import collect as collect_samples
from phonebit.planner.cost_models import train
from phonebit.planner.measure.orders import CollectionPlan
from phonebit.planner.predict.profile import read_profile
from phonebit.planner.predict.samples import read_samples

TRAINING_SHARE: Final = 0.2
"""Of the budget; the rest is for collecting."""
LAYERS: Final = 1700
"""Of these at least 500 are linear, 500 convolutional and 500 others."""
SMOKE_LAYERS: Final = 12


class TimeIsOverError(Exception):
    """Collecting has taken its share of the budget."""


def collect(
    bench: Bench, samples: Path, threads: Sequence[int], count: int, limit_s: float
) -> None:
    """Collects until there are enough samples or the time is over."""
    budget = Budget(limit_s)

    def stop_in_time(text: str) -> None:
        if not budget.left_s:
            raise TimeIsOverError(text)

    plan = CollectionPlan(layers=count, threads=tuple(threads), seed=SEED)
    with suppress(TimeIsOverError):
        collect_samples(samples, plan, device=f"{bench.gpu}+cpu", progress=stop_in_time)


def measure(bench: Bench) -> dict[str, Any]:
    """Collects and trains."""
    bench.profile.parent.mkdir(parents=True, exist_ok=True)
    wanted = SMOKE_LAYERS if bench.smoke else LAYERS
    cores = bench.testbed.cpu_cores
    threads = sorted({*cpu_threads(cores), cores})
    collect(bench, bench.samples, threads, wanted, (1 - TRAINING_SHARE) * bench.budget.seconds)
    train(bench.samples, bench.profile)
    found = read_samples(bench.samples)
    return {
        "parts": len(found.parts),
        "layers": len({part.layer for part in found.parts}),
        "rounds": mean(part.rounds for part in found.parts),
        "handovers": len(found.handovers),
        "threads": list(read_profile(bench.profile).threads),
    }


if __name__ == "__main__":
    sys.exit(main({"profile": measure}, __doc__, budget_s=900))
