"""Branches: layers between a fork and a join that do not read each other, on different processors.

µLayer (EuroSys '19), section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from itertools import chain
from typing import Final

from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, Stage, on_one

MAX_BRANCHES: Final = 10
"""All 2^k mappings are tried; of more branches, the shortest count as one."""
MAPPINGS_KEPT: Final = 14
"""All of four branches; of more, the best ones."""

Region = list[tuple[int, ...]]
"""Branches that one layer joins, the layer after their last: of each its layers, ascending."""


def branch_regions(graph: NetworkGraph) -> Iterator[Region]:
    """The regions of two or more branches of a network, by join.

    A branch of a join is what one of its operands comes from and the others do not. Regions between
    whose layers the file has others are left out: a stage's layers follow each other.
    """
    ancestors: list[set[int]] = []
    for layer in graph.layers:
        sources = {graph.writer[tensor] for tensor in layer.reads if tensor in graph.writer}
        origins = [ancestors[source] for source in sorted(sources)]
        own = (origin.difference(*(of for of in origins if of is not origin)) for origin in origins)
        region = [tuple(sorted(branch)) for branch in own if branch]
        layers = sorted(chain.from_iterable(region))
        if len(region) > 1 and layers == list(range(layers[0], layer.index)):
            yield region
        ancestors.append({layer.index}.union(*(ancestors[source] for source in sources)))


def branch_stages(costs: StageCosts, region: Region) -> list[Stage]:
    """The best mappings of branches to processors, each with work for both, cheapest first."""

    def better_us(branch: tuple[int, ...]) -> float:
        return min(sum(of_side[layer] for layer in branch) for of_side in costs.single_us.values())

    branches = sorted(region, key=better_us, reverse=True)
    if len(branches) > MAX_BRANCHES:
        rest = chain.from_iterable(branches[MAX_BRANCHES - 1 :])
        branches[MAX_BRANCHES - 1 :] = [tuple(sorted(rest))]
    mappings = range(1, 2 ** len(branches) - 1)
    stages = (_stage(costs.graph, branches, mapping) for mapping in mappings)
    return nsmallest(MAPPINGS_KEPT, stages, key=costs.work_us)


def _stage(graph: NetworkGraph, branches: Region, mapping: int) -> Stage:
    """Branches whose bit is set are on the GPU."""
    sides = {
        layer: Processor.GPU if mapping >> number & 1 else Processor.CPU
        for number, branch in enumerate(branches)
        for layer in branch
    }
    parts = (on_one(graph.layers[layer], side).parts[0] for layer, side in sorted(sides.items()))
    return Stage(Placement.BRANCHES, tuple(parts))
