"""Branches: layers between a fork and a join that do not read each other, on different processors.

µLayer (EuroSys '19), section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain
from typing import Final

from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import LayerParts, Placement, Stage

MAX_BRANCHES: Final = 10
"""All 2^k mappings are tried; of more branches, the shortest count as one."""
MAPPINGS_KEPT: Final = 14
"""All of four branches; of more, the best ones."""


@dataclass(frozen=True)
class BranchRegion:
    """Layers ``begin .. end - 1``, which make up the branches that layer ``end`` joins.

    Args:
        begin: First layer.
        end: The join.
        branches: Layers of each branch, ascending; two or more branches.
    """

    begin: int
    end: int
    branches: tuple[tuple[int, ...], ...]


def branch_regions(graph: NetworkGraph) -> Iterator[BranchRegion]:
    """The regions of a network, by join.

    A branch of a join is what one of its operands comes from and the others do not. Regions between
    whose layers the file has others are left out: a stage's layers follow each other.
    """
    ancestors: list[set[int]] = []
    for layer in graph.layers:
        sources = {graph.writer[tensor] for tensor in layer.reads if tensor in graph.writer}
        region = _region(layer.index, [ancestors[source] for source in sorted(sources)])
        if region is not None:
            yield region
        ancestors.append({layer.index}.union(*(ancestors[source] for source in sources)))


def _region(join: int, origins: list[set[int]]) -> BranchRegion | None:
    branches = []
    for number, origin in enumerate(origins):
        others = origins[:number] + origins[number + 1 :]
        own = origin.difference(*others)
        if own:
            branches.append(tuple(sorted(own)))
    layers = sorted(chain.from_iterable(branches))
    if len(branches) < 2 or layers != list(range(layers[0], join)):
        return None
    return BranchRegion(layers[0], join, tuple(branches))


def branch_stages(costs: StageCosts, region: BranchRegion) -> list[Stage]:
    """The best mappings of branches to processors, each with work for both.

    Args:
        costs: Of stages.
        region: Of the same network.

    Returns:
        Stages, cheapest first; equally cheap ones in the order of the mappings' numbers.
    """
    branches = _at_most(costs, region.branches, MAX_BRANCHES)
    cpu_us, gpu_us = (
        [sum(costs.single_us[side][layer] for layer in branch) for branch in branches]
        for side in (Processor.CPU, Processor.GPU)
    )

    def work_us(mapping: int) -> float:
        on_gpu = [bool(mapping >> branch & 1) for branch in range(len(branches))]
        gpu = sum(us for us, is_on_gpu in zip(gpu_us, on_gpu, strict=True) if is_on_gpu)
        cpu = sum(us for us, is_on_gpu in zip(cpu_us, on_gpu, strict=True) if not is_on_gpu)
        return max(cpu, gpu)

    best = nsmallest(MAPPINGS_KEPT, range(1, 2 ** len(branches) - 1), key=work_us)
    return [_stage(costs.graph, region, branches, mapping) for mapping in best]


def _stage(
    graph: NetworkGraph, region: BranchRegion, branches: list[tuple[int, ...]], mapping: int
) -> Stage:
    on_gpu = {
        layer for number, branch in enumerate(branches) if mapping >> number & 1 for layer in branch
    }
    parts = []
    for layer in graph.layers[region.begin : region.end]:
        is_on_gpu = layer.index in on_gpu
        cpu, gpu = (None, layer.whole) if is_on_gpu else (layer.whole, None)
        parts.append(LayerParts(layer.index, cpu, gpu))
    return Stage(Placement.BRANCHES, tuple(parts))


def _at_most(
    costs: StageCosts, branches: tuple[tuple[int, ...], ...], count: int
) -> list[tuple[int, ...]]:
    def better_us(branch: tuple[int, ...]) -> float:
        return min(sum(of_side[layer] for layer in branch) for of_side in costs.single_us.values())

    by_time = sorted(branches, key=better_us, reverse=True)
    kept, rest = by_time[: count - 1], by_time[count - 1 :]
    return [*kept, tuple(sorted(chain.from_iterable(rest)))] if rest else kept
