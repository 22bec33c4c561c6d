"""Single layers: cuts by predictors and an exhaustive search; Fine-Grained, tables 2 and 4.

    python -m benchmarks.coexec.layers --testbed g1c1-avx2 --budget-s 600

Layers are drawn at random from those of section 5.3 (layer_files.py), for one CPU thread and for
three. The search measures every cut at a multiple of 8 channels; the better ones, the predicted
cuts and both processors alone are then measured again in turns, so that no candidate profits from
having been measured in a lucky moment. For table 4 there are also the cuts of predictors that do
not look at the dispatch, and the predicted cuts with the processors waiting for each other by
events: the paper's "original overhead".
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any, Final

from benchmarks.coexec import layer_files
from benchmarks.coexec.experiment import SEED, Bench, main
from benchmarks.coexec.layer_files import MeasuredLayer, name_of
from benchmarks.coexec.plans import Planner
from benchmarks.coexec.turns import Budget
from phonebit import DeviceError
from phonebit.planner.predict.layer_shape import LayerShape

THREADS: Final = (1, 3)
"""Of the CPU, as far as it has as many cores: the fewest and the most of the paper."""
GRAIN: Final = 8
MAX_CUTS: Final = 128
"""Of a search; wider layers are searched in larger steps."""
FINALISTS: Final = 3
SEARCH_REPEATS: Final = 2
FINAL_REPEATS: Final = 3
FINAL_ROUNDS: Final = 7
MAX_LAYERS: Final = 1000
"""Half of them linear."""
METHODS: Final = ("finegrained", "codl", "ulayer")
PLAIN, EVENTS = "finegrained_plain", "events"
"""Fine-Grained's cut without augmentation, and its cut as it is by events."""


def cpu_threads(cores: int) -> list[int]:
    """THREADS as far as there are cores."""
    return [threads for threads in THREADS if threads <= cores]


def search(layer: MeasuredLayer) -> dict[int, float]:
    """Microseconds by channels of the GPU, for a grid of cuts."""
    cuts = layer.channels // GRAIN
    step = GRAIN * -(-cuts // MAX_CUTS)
    return {
        channels: layer.channels_split(channels, SEARCH_REPEATS).total_us
        for channels in range(step, layer.channels, step)
    }


def measure_layer(bench: Bench, case: LayerShape, threads: int) -> dict[str, Any]:
    """One layer with some CPU threads: microseconds, and the cuts, as channels of the GPU."""
    planner = Planner(bench.profile, threads)
    layer = MeasuredLayer(bench, case, threads)
    file = layer_files.stored_layer(case, bench.networks)
    cuts = {name: planner.channels(*file, name) for name in METHODS}
    plain = Planner(bench.profile, threads, is_augmented=False)
    cuts[PLAIN] = plain.channels(*file, "finegrained")
    searched = search(layer)
    finalists = sorted(searched, key=searched.__getitem__)[:FINALISTS]
    alone = {"cpu": 0, "gpu": layer.channels}
    candidates = dict.fromkeys((*alone.values(), *cuts.values(), *finalists))
    rounds = 3 if bench.smoke else FINAL_ROUNDS
    times = layer_files.in_turns(layer, candidates, FINAL_REPEATS, rounds)
    found = min(times, key=times.__getitem__)
    by_events = MeasuredLayer(bench, case, threads, synchronization="events")
    cut = cuts["finegrained"]
    events_us = layer_files.in_turns(by_events, [cut], FINAL_REPEATS, rounds)[cut]
    return {
        "kind": "linear" if case.in_w == 1 else "convolution",
        "name": name_of(case),
        "macs": layer_files.macs_of(case),
        "threads": threads,
        "us": {
            **{side: times[of] for side, of in alone.items()},
            "search": times[found],
            **{name: times[of] for name, of in cuts.items()},
            EVENTS: events_us,
        },
        "gpu_channels": {**cuts, "search": found, "all": layer.channels},
    }


def measure(bench: Bench) -> dict[str, Any]:
    """As many layers as the budget allows, a linear one and a convolution in turn."""
    rows: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    longest_s = 0.0
    cases = islice(layer_files.draw(SEED), 2 if bench.smoke else MAX_LAYERS)
    for number, case in enumerate(cases):
        if number >= 2 and bench.budget.left_s < longest_s:
            break
        clock = Budget(0)
        try:
            for threads in cpu_threads(bench.testbed.cpu_cores):
                rows.append(measure_layer(bench, case, threads))
        except DeviceError as error:
            failures[name_of(case)] = str(error)
        longest_s = max(longest_s, clock.used_s)
        print(f"  {name_of(case)}: {clock.used_s:.1f} s", flush=True)
    if not rows:
        raise DeviceError(f"no layer could be measured: {failures}", where=bench.both)
    return {"grain": GRAIN, "rows": rows, "failures": failures}


if __name__ == "__main__":
    sys.exit(main({"layers": measure}, __doc__, budget_s=600))
