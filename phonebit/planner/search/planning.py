"""From a network and the times of its parts to a plan that is not slower than one processor."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from typing import Final

from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.planner.plan.execution_plan import ExecutionPlan, Processor
from phonebit.planner.plan.verify_plan import verify_plan
from phonebit.planner.predict.profile import MIN_MARGIN
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.methods import (
    BestCuts,
    CutsOf,
    Method,
    best_cuts,
    method_cuts,
    several_layers,
    single_layers,
)
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import PartTimes
from phonebit.planner.search.stage_costs import StageCosts, State
from phonebit.planner.search.stages import Placement, Stage, as_plan

MAX_CUTS: Final = 4
"""Cuts of a layer along a dimension that are measured at most."""
MAX_STATES: Final = 64
"""Paths that are kept at each layer."""


def best_stages(costs: StageCosts, candidates: Iterable[Stage], margin: float) -> list[Stage]:
    """The fastest sequence of stages that has every layer once: a shortest path.

    A stage's cost depends on those before it by the rows that its processors still have to get, so
    a path is described by its last layer and by who holds what is still needed (``State``). Of
    paths that agree in both only the fastest can be part of the best. On a linear run few states
    differ and the result is exact; where branches keep many tensors alive, the fastest
    ``MAX_STATES`` go on.

    Among equally fast ones those win that come first in ``candidates``, in which each layer has a
    stage of its own at least. Stages away from home must be better than they seem, by a margin.
    """
    home = _home(costs)
    by_begin: dict[int, list[tuple[Stage, float]]] = defaultdict(list)
    for stage in candidates:
        needed_us = 0.0 if stage.processor == home else margin * costs.better_single_us(stage)
        by_begin[stage.begin].append((stage, needed_us))
    paths: dict[int, dict[State, tuple[float, list[Stage]]]] = defaultdict(dict)
    paths[0][costs.first_state()] = 0.0, []
    for layer in range(len(costs.graph.layers)):
        here = paths.pop(layer, {})
        for state, (us, path) in nsmallest(MAX_STATES, here.items(), key=lambda item: item[1][0]):
            for stage, more_us in by_begin[layer]:
                after, stage_us = costs.advance(state, stage)
                cost_us = us + stage_us + more_us
                known = paths[stage.end].get(after)
                if known is None or cost_us < known[0]:
                    paths[stage.end][after] = cost_us, [*path, stage]
    last = paths[len(costs.graph.layers)]
    return min(last.items(), key=lambda item: item[1][0] + costs.finish(item[0]))[1][1]


@dataclass(frozen=True)
class Planned:
    """A plan and why it is what it is.

    Args:
        costs: By which it was chosen: measured, if measurements were given.
        predicted: By which it was first chosen; the same object where nothing was measured.
        best_cuts: Of each layer, by ``costs``; some of those that it was chosen from.
        home: The processor that is faster for the whole network.
    """

    device: str
    method: str
    stages: Sequence[Stage]
    costs: StageCosts
    predicted: StageCosts
    best_cuts: BestCuts
    home: Processor

    @cached_property
    def plan(self) -> ExecutionPlan:
        """The stages, as files hold them."""
        return as_plan(self.stages, self.device, self.method, self.total_us / 1000)

    @cached_property
    def total_us(self) -> float:
        """Microseconds of the plan, by ``costs``."""
        return self.costs.total_us(self.stages)

    @cached_property
    def home_us(self) -> float:
        """Microseconds of the network on ``home``."""
        return self.at_home(self.home).total_us

    @property
    def is_split(self) -> bool:
        """Whether the plan uses both processors."""
        return any(stage.processor != self.home for stage in self.stages)

    def at_home(self, home: Processor) -> Planned:
        """All layers on one processor instead."""
        return replace(self, stages=self.costs.single_processor(home), home=home)


def plan_network(
    contents: FileContents,
    device: str,
    method: Method,
    times: PartTimes,
    sharing: SharingCost,
    margin: float = MIN_MARGIN,
    measured: PartTimes | None = None,
) -> Planned:
    """Plans a network.

    A stage that is not wholly on the processor which is faster for the whole network (its home)
    must gain a margin of the better single processor's time for its layers; the plan must gain as
    much over home, or it is home.

    Args:
        contents: The network.
        device: Key of the device profile that the times are from.
        method: Where it may cut, and what else it may do.
        times: Predicted, or measured for a method that measures.
        sharing: What synchronizations of the processors cost.
        margin: Share of the better single processor's time that a stage on both, and the whole
            plan, must gain by ``times``: 0 or more, below 1. Less than the predictor's error is no
            gain.
        measured: If given, cuts of each layer are measured from the best one on, and the plan is
            made from that.

    Raises:
        InputError: The network has no layer that can be cut.
    """
    graph = NetworkGraph.of(contents)
    cuts = method_cuts(graph.layers, method)
    shapes = [layer.geometry for layer in graph.layers]
    if not any(shape.can_cut_rows or shape.can_cut_channels for shape in shapes):
        raise InputError(
            "no layer of this network can be cut between two processors",
            expected="a convolution without groups, a pool, or maps of more than one row",
            hint="run it on one of them: device='cpu' or device='gpu'",
        )
    predicted = StageCosts(graph, times, sharing)
    best = best_cuts(predicted, cuts)
    singles = single_layers(graph, best)
    stages = best_stages(predicted, singles + several_layers(predicted, method, singles), margin)
    costs = predicted
    if measured is not None:
        costs, margin = StageCosts(graph, measured, sharing), MIN_MARGIN
        best = _balanced_cuts(costs, cuts, best)
        several = [of for of in stages if of.placement in (Placement.CHAIN, Placement.BRANCHES)]
        stages = best_stages(costs, single_layers(graph, best) + several, margin)
    planned = Planned(device, method.name, stages, costs, predicted, best, _home(costs))
    if planned.total_us > (1 - margin) * planned.home_us:
        planned = planned.at_home(planned.home)
    verify_plan(contents, planned.plan)
    return planned


def _home(costs: StageCosts) -> Processor:
    """The processor that is faster for the whole network; the GPU of equal ones."""
    sides = (Processor.GPU, Processor.CPU)
    return min(sides, key=lambda side: costs.total_us(costs.single_processor(side)))


def _balanced_cuts(costs: StageCosts, cuts: CutsOf, best: BestCuts) -> BestCuts:
    """The best of some measured cuts.

    From the predicted one on, each is the one at which both parts would take as long if they went
    on at the rates of the last one.
    """
    found = {}
    for (layer, dimension), stage in best.items():
        size = costs.graph.layers[layer].shape[0 if dimension == Placement.ROWS else 2]
        tried: list[Stage] = []
        while stage not in tried and len(tried) < MAX_CUTS:
            tried.append(stage)
            [(cpu_us, gpu_us)] = costs.part_times(stage.parts)
            by_gpu, by_cpu = stage.cut * cpu_us, (size - stage.cut) * gpu_us
            if math.isfinite(total := by_gpu + by_cpu) and total > 0:
                balanced = size * by_gpu / total
                stage = min(cuts[layer, dimension], key=lambda of: abs(of.cut - balanced))
        found[layer, dimension] = min(tried, key=costs.alone_us)
    return found
