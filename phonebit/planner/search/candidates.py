"""The stages that a method offers: layers on one processor, their best cuts, chains, branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.search.branches import branch_regions, branch_stages
from phonebit.planner.search.chains import find_chains
from phonebit.planner.search.methods import Method
from phonebit.planner.search.network_graph import GraphLayer
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, Stage, cut_in_two, on_one

CUTS: Final = (Placement.ROWS, Placement.CHANNELS)

CutsOf = Mapping[tuple[int, Placement], Sequence[int]]
"""Cuts of a layer along a dimension, ascending."""


@dataclass
class Candidates:
    """What a plan may be made of, and the best stage of each layer along each dimension."""

    stages: list[Stage]
    best_cuts: dict[tuple[int, Placement], Stage]


def method_cuts(layers: Sequence[GraphLayer], method: Method) -> CutsOf:
    """All cuts that a method tries; see ``Method.cuts``."""
    return {
        (layer.index, dimension): cuts
        for layer in layers
        for dimension in CUTS
        if (cuts := method.cuts(layer, dimension))
    }


def find_candidates(costs: StageCosts, method: Method, cuts: CutsOf) -> Candidates:
    """Layers on either processor and with their best cuts; chains; branches."""
    graph = costs.graph
    best = {place: _best_cut(costs, place, of_layer) for place, of_layer in cuts.items()}
    stages = []
    for layer in graph.layers:
        stages += [on_one(layer, side) for side in (Processor.GPU, Processor.CPU)]
        stages += [best[layer.index, side] for side in CUTS if (layer.index, side) in best]
    if method.chains:
        stages += _chains(costs, stages, best)
    if method.branches:
        for region in branch_regions(graph):
            stages += branch_stages(costs, region)
    return Candidates(stages, best)


def _best_cut(costs: StageCosts, place: tuple[int, Placement], cuts: Sequence[int]) -> Stage:
    """By the cost of the layer alone: CoDL, eq. 2; Fine-Grained, section 2."""
    layer = costs.graph.layers[place[0]]
    stages = [cut_in_two(layer, place[1], cut) for cut in cuts]
    costs.part_times([stage.parts[0] for stage in stages])
    return min(stages, key=costs.alone_us)


def _chains(
    costs: StageCosts,
    singles: Sequence[Stage],
    best: Mapping[tuple[int, Placement], Stage],
) -> list[Stage]:
    layers = costs.graph.layers
    unchained_us = [float("inf")] * len(layers)
    for stage in singles:
        unchained_us[stage.begin] = min(unchained_us[stage.begin], costs.alone_us(stage))
    tenths = [
        round(10 * best[layer.index, Placement.ROWS].cut / layer.shape[0])
        if (layer.index, Placement.ROWS) in best
        else None
        for layer in layers
    ]
    return find_chains(costs, tenths, unchained_us)
