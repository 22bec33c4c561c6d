"""Which stages together make the fastest network: shortest path over what stages leave behind.

A stage's cost depends on those before it by the rows that its processors still have to get, so a
path is described by its last layer and by who holds what is still needed (``State``). Of paths
that agree in both only the fastest can be part of the best. On a linear run few states differ and
the result is exact; where branches keep many tensors alive, the fastest ``MAX_STATES`` go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Final, NamedTuple

from phonebit.planner.search.stage_costs import StageCosts, State
from phonebit.planner.search.stages import Stage

MAX_STATES: Final = 64
"""Paths that are kept at each layer."""

Handicap = Callable[[Stage], float]
"""Microseconds by which a stage must be better than it seems."""


class _Path(NamedTuple):
    cost_us: float
    stage: Stage | None
    before: _Path | None


def best_stages(
    costs: StageCosts, candidates: Iterable[Stage], handicap: Handicap, states: int = MAX_STATES
) -> list[Stage]:
    """The fastest sequence of stages that has every layer once.

    Args:
        costs: Of the network.
        candidates: At least one stage of its own for each layer.
        handicap: Added to the costs of each stage.
        states: How many paths go on at each layer.

    Returns:
        Stages in order. Among equally fast ones those win that come first in ``candidates``.
    """
    by_begin: dict[int, list[Stage]] = defaultdict(list)
    for stage in candidates:
        by_begin[stage.begin].append(stage)
    paths: dict[int, dict[State, _Path]] = defaultdict(dict)
    paths[0][costs.first_state()] = _Path(0.0, None, None)
    for layer in range(len(costs.graph.layers)):
        here = paths.pop(layer, {})
        for state, path in nsmallest(states, here.items(), key=lambda item: item[1].cost_us):
            for stage in by_begin[layer]:
                behind, stage_us = costs.advance(state, stage)
                cost_us = path.cost_us + stage_us + handicap(stage)
                known = paths[stage.end].get(behind)
                if known is None or cost_us < known.cost_us:
                    paths[stage.end][behind] = _Path(cost_us, stage, path)
    last = paths[len(costs.graph.layers)]
    best = min(last.items(), key=lambda item: item[1].cost_us + costs.finish(item[0]))[1]
    stages = []
    step: _Path | None = best
    while step is not None and step.stage is not None:
        stages.append(step.stage)
        step = step.before
    return stages[::-1]
