"""Whole networks searched by measuring them: the yardstick of all planners.

    python -m benchmarks.coexec.network_search --testbed g1c1-avx2 --only search_vgg_small

A coarse grid: each layer runs on either processor, or is cut by rows or channels at a quarter, a
half or three quarters; layers of one shape are treated alike. Shape by shape, the largest first,
each way is tried in passes of the whole network, and the quickest stays. So every layer is judged
where it runs, with what its neighbours left in the caches and what they exchange. It is no way to
plan: a network takes minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.networks import check_equal
from benchmarks.coexec.paper_networks import SEARCHED, network_file
from benchmarks.coexec.plans import FINEGRAINED, Planner
from benchmarks.coexec.turns import Budget
from phonebit.format.reader import read_contents
from phonebit.planner.measure.engines import NetworkOnDevice
from phonebit.planner.plan.execution_plan import ExecutionPlan, Processor
from phonebit.planner.search.methods import Method
from phonebit.planner.search.network_graph import GraphLayer, NetworkGraph
from phonebit.planner.search.stages import Placement, Stage, as_plan, cut_in_two, on_one

GRID: Final = Method("grid", (Placement.ROWS, Placement.CHANNELS), percents=(25, 50, 75))
SEARCH_SHARE: Final = 0.7
"""Of the budget; the rest compares what was found with the planner's."""
AT_ONCE: Final = 4
"""Plans that are loaded and take turns, the best one so far among them."""

PassUs = Callable[[Sequence[list[Stage]]], list[float]]
"""Microseconds of passes as some lists of stages say, which take turns."""


def ways_of(layer: GraphLayer) -> list[Stage]:
    """All that may be done with a layer."""
    cuts = [
        cut_in_two(layer, dimension, cut)
        for dimension in GRID.dimensions
        for cut in GRID.cuts(layer, dimension)
    ]
    return [*(on_one(layer, side) for side in Processor), *cuts]


def search(
    layers: Sequence[GraphLayer], pass_us: PassUs, has_time: Callable[[], bool]
) -> tuple[list[Stage], int]:
    """The quickest stages that were found, and how many shapes were searched before time was over.

    ``has_time`` says whether another shape may be begun.
    """
    singles = [[on_one(layer, side) for layer in layers] for side in Processor]
    times = pass_us(singles)
    best = singles[times.index(min(times))]
    shapes = [layer.geometry for layer in layers]
    by_work = sorted(dict.fromkeys(shapes), key=lambda of: of.operations(of.whole), reverse=True)
    for number, shape in enumerate(by_work):
        if not has_time():
            return best, number
        alike = [place for place, of in enumerate(shapes) if of == shape]
        ways = [ways_of(layers[place]) for place in alike]
        others = []
        for of_way in zip(*ways, strict=True):
            stages = list(best)
            for place, stage in zip(alike, of_way, strict=True):
                stages[place] = stage
            others.append(stages)
        for begin in range(0, len(others), AT_ONCE - 1):
            tried = [best, *others[begin : begin + AT_ONCE - 1]]
            times = pass_us(tried)
            best = tried[times.index(min(times))]
    return best, len(by_work)


def measure_network(name: str, bench: Bench) -> dict[str, Any]:
    """One network as searched, as planned by Fine-Grained, and on either processor."""
    path = network_file(bench.networks, name, "exact")
    layers = NetworkGraph.of(read_contents(path)).layers
    device = NetworkOnDevice(path, bench.both, bench.testbed.cpu_cores)
    passes = 0

    def plan_of(stages: Sequence[Stage]) -> ExecutionPlan:
        return as_plan(stages, device.plan_key, "user", 0.0)

    def pass_us(tried: Sequence[list[Stage]]) -> list[float]:
        nonlocal passes
        passes += len(tried)
        return [times.total_us for times in device.passes(list(map(plan_of, tried)))]

    budget = Budget(bench.budget.left_s * SEARCH_SHARE)
    limit = 1 if bench.smoke else len(layers)
    starts = iter(range(limit))
    found, searched = search(
        layers, pass_us, lambda: budget.left_s > 0 and next(starts, None) is not None
    )
    planned = Planner(bench.profile, bench.testbed.cpu_cores).plan(path, FINEGRAINED)
    networks = bench.alone(path) | {
        "finegrained": bench.load(path, plan=planned.plan),
        "search": bench.load(path, plan=plan_of(found)),
    }
    check_equal(networks, name)
    return {
        "network": name,
        "shapes": len({layer.geometry for layer in layers}),
        "searched": searched,
        "plans_tried": passes,
        **bench.compete(networks),
    }


if __name__ == "__main__":
    experiments = {f"search_{name}": partial(measure_network, name) for name in SEARCHED}
    sys.exit(main(experiments, __doc__, budget_s=600))
