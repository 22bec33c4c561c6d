"""Cuts moved a little: what is best for a layer alone need not be so among its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from phonebit.planner.search.placement import Handicap
from phonebit.planner.search.stage_costs import StageCosts, State
from phonebit.planner.search.stages import Stage

MAX_ROUNDS: Final = 4
"""How often all stages are looked at again."""
LEAST_GAIN_US: Final = 1e-6
"""Less is a difference between sums of floats."""

Variants = Callable[[Stage], Sequence[Stage]]
"""Stages of the same layers with other cuts."""


def refine(
    costs: StageCosts, stages: Sequence[Stage], variants: Variants, handicap: Handicap
) -> list[Stage]:
    """Takes other cuts as long as the whole network gets faster.

    Args:
        costs: Of the network.
        stages: All of it.
        variants: What else a stage could be.
        handicap: As for ``best_stages``.

    Returns:
        Stages of the same layers each.
    """
    current = list(stages)
    for _ in range(MAX_ROUNDS):
        improved = False
        state = costs.first_state()
        for number in range(len(current)):
            for other in variants(current[number]):
                if _gain_us(costs, state, current[number:], other, handicap) > LEAST_GAIN_US:
                    current[number] = other
                    improved = True
            state, _ = costs.advance(state, current[number])
        if not improved:
            break
    return current


def _gain_us(
    costs: StageCosts, state: State, stages: Sequence[Stage], other: Stage, handicap: Handicap
) -> float:
    """How much faster the network gets with another first stage of ``stages``.

    Behind a stage or two both ways have usually left the same: then the rest costs the same, too.
    """
    mine, my_us = costs.advance(state, stages[0])
    theirs, their_us = costs.advance(state, other)
    gain = my_us + handicap(stages[0]) - their_us - handicap(other)
    for stage in stages[1:]:
        if mine == theirs:
            return gain
        mine, my_us = costs.advance(mine, stage)
        theirs, their_us = costs.advance(theirs, stage)
        gain += my_us - their_us
    return gain + costs.finish(mine) - costs.finish(theirs)
