"""What each method offers: layers on one processor, their best cuts, chains, branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import WORD_CHANNELS, Processor
from phonebit.planner.search.branches import branch_regions, branch_stages
from phonebit.planner.search.chains import find_chains
from phonebit.planner.search.network_graph import GraphLayer, NetworkGraph
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, Stage, cut_in_two, on_one

CUTS: Final = (Placement.ROWS, Placement.CHANNELS)

CHANNEL_GRAIN: Final = 8
"""Channels are cut at multiples of this, so that both processors write whole bytes of bits."""
ROW_STEP: Final = 8
"""Distance of the row cuts of a method that has no shares, on high maps."""


@dataclass(frozen=True)
class Method:
    """A planner: where it may cut a layer, and what else it may do.

    Args:
        dimensions: ROWS, CHANNELS or both.
        cost_models: The method whose cost models it plans by; none: it measures each cut.
        percents: Shares of the GPU; none: every cut at a multiple of a step.
        channel_step: Channels are cut at multiples of this.
        row_cuts: Low maps are cut at smaller steps, so that there are about as many cuts.
        chains: Whether it looks for chains.
        branches: Whether it runs branches side by side.
    """

    name: str
    dimensions: tuple[Placement, ...]
    cost_models: str = ""
    percents: tuple[int, ...] = ()
    channel_step: int = WORD_CHANNELS
    row_cuts: int = 8
    chains: bool = False
    branches: bool = False

    def cuts(self, layer: GraphLayer, dimension: Placement) -> list[int]:
        """Where the method may cut a layer between the GPU's low part and the CPU's high part.

        Returns:
            Rows or channels of the GPU, ascending; none where the layer cannot be cut so.
        """
        if dimension not in self.dimensions:
            return []
        is_row = dimension == Placement.ROWS
        if not (layer.geometry.can_cut_rows if is_row else layer.geometry.can_cut_channels):
            return []
        size = layer.shape[0] if is_row else layer.shape[2]
        if not self.percents:
            step = min(ROW_STEP, max(1, size // self.row_cuts)) if is_row else self.channel_step
            return list(range(step, size, step))
        grain = 1 if is_row else self.channel_step
        cuts = {round(size * percent / 100 / grain) * grain for percent in self.percents}
        return sorted(cut for cut in cuts if 0 < cut < size)


METHODS: Final = {
    method.name: method
    for method in (
        Method("ulayer", (Placement.CHANNELS,), "ulayer", percents=(25, 50, 75), branches=True),
        Method("codl", CUTS, "codl", percents=tuple(range(10, 100, 10)), chains=True),
        Method("finegrained", (Placement.CHANNELS,), "finegrained"),
        Method("combined", CUTS, "finegrained", row_cuts=32, chains=True, branches=True),
        Method("search", CUTS, channel_step=CHANNEL_GRAIN, branches=True),
    )
}
"""The ways to plan, by name: µLayer (EuroSys '19), sections 3.2 and 5; CoDL (MobiSys '22), section
4; Fine-Grained Co-execution (EPEW '25), section 2; all that these may do, predicted by the last; a
grid search by measuring."""


def method_named(name: str) -> Method:
    """The method of a name."""
    if name not in METHODS:
        expected = f"one of {', '.join(METHODS)}"
        raise InputError("no such way to plan", where="method", expected=expected, got=repr(name))
    return METHODS[name]


CutsOf = Mapping[tuple[int, Placement], Sequence[Stage]]
"""A layer cut along a dimension, the lowest cut first."""
BestCuts = Mapping[tuple[int, Placement], Stage]
"""The best of them."""


def method_cuts(layers: Sequence[GraphLayer], method: Method) -> CutsOf:
    """All cuts that a method tries; see ``Method.cuts``."""
    return {
        (layer.index, dimension): [cut_in_two(layer, dimension, cut) for cut in cuts]
        for layer in layers
        for dimension in CUTS
        if (cuts := method.cuts(layer, dimension))
    }


def best_cuts(costs: StageCosts, cuts: CutsOf) -> BestCuts:
    """By the cost of the layer alone: CoDL, eq. 2; Fine-Grained, section 2."""
    for stages in cuts.values():
        costs.part_times([stage.parts[0] for stage in stages])
    return {key: min(stages, key=costs.alone_us) for key, stages in cuts.items()}


def single_layers(graph: NetworkGraph, best: BestCuts) -> list[Stage]:
    """Stages of one layer: on either processor, its best cuts, and those of layers before it.

    A layer that reads the channels that it writes needs no exchange where it is cut between the
    channels at which a layer was cut that it reads.
    """
    stages = []
    cuts: dict[int, set[int]] = {}  # between channels, of each layer
    for layer in graph.layers:
        stages += [on_one(layer, side) for side in (Processor.GPU, Processor.CPU)]
        stages += [best[layer.index, side] for side in CUTS if (layer.index, side) in best]
        own = best.get((layer.index, Placement.CHANNELS))
        cuts[layer.index] = {own.cut} if own else set()
        if own and layer.geometry.reads_same_channels:
            writers = {graph.writer.get(tensor, -1) for tensor in layer.reads}
            before = set().union(*(cuts.get(writer, set()) for writer in writers))
            followed = sorted(before - cuts[layer.index])
            stages += [cut_in_two(layer, Placement.CHANNELS, cut) for cut in followed]
            cuts[layer.index] |= before
    return stages


def several_layers(costs: StageCosts, method: Method, singles: Sequence[Stage]) -> list[Stage]:
    """A method's chains and branches."""
    stages = find_chains(costs, singles) if method.chains else []
    if method.branches:
        for region in branch_regions(costs.graph):
            stages += branch_stages(costs, region)
    return stages
