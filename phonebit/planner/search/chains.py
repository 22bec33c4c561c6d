"""Chains: layers cut by rows one after the other, without an exchange in between.

Each processor computes, of every layer but the last, what its part of the last layer needs, so that
rows near the cut are computed twice. CoDL (MobiSys '22), section 4.2 and algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.search.network_graph import NetworkGraph, extend
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import LayerParts, Placement, Stage

DELTA_TENTHS: Final = 3
"""How far a chain's share may be from that of its first layer alone: CoDL's delta, 0.3."""


def chain_stage(graph: NetworkGraph, begin: int, end: int, cut: int) -> Stage | None:
    """Layers ``begin .. end - 1`` as one stage; the GPU computes the last one's rows below a cut.

    None where a layer cannot be cut between rows, or a processor needs none of it.
    """
    if any(not layer.geometry.can_cut_rows for layer in graph.layers[begin:end]):
        return None
    gpu, cpu = graph.layers[end - 1].geometry.whole.cut(row=cut)
    of_cpu, of_gpu = (_parts_of_layers(graph, begin, end, part) for part in (cpu, gpu))
    if not len(of_cpu) == len(of_gpu) == end - begin:
        return None
    parts = [LayerParts(index, of_cpu[index], of_gpu[index]) for index in range(begin, end)]
    return Stage(Placement.CHAIN, tuple(parts), cut)


def _parts_of_layers(
    graph: NetworkGraph, begin: int, end: int, of_last: OutputPart
) -> dict[int, OutputPart]:
    """Of each layer, what a part of the last one comes from; layers that give none are missing."""
    parts = {end - 1: of_last}
    for index in reversed(range(begin, end)):
        if index not in parts:
            continue
        for tensor, read in graph.parts_read(graph.layers[index], parts[index]):
            writer = graph.writer.get(tensor, -1)
            if writer >= begin:
                extend(parts, writer, read)
    return parts


def chain_ends(graph: NetworkGraph, begin: int) -> Iterator[int]:
    """Where chains from a layer may end: what is after their last layer.

    Only the last layer's results may be needed outside, since the others are computed twice near
    the cut and neither processor has all of them.
    """
    for end in range(begin + 1, len(graph.layers) + 1):
        if not graph.layers[end - 1].geometry.can_cut_rows:
            return
        inner = [tensor for layer in graph.layers[begin : end - 1] for tensor in layer.outputs]
        if all(graph.last_reader.get(tensor, -1) < end for tensor in inner):
            yield end


def find_chains(costs: StageCosts, singles: Iterable[Stage]) -> list[Stage]:
    """Chains that gain against their layers one by one, found from the front.

    From a head the chain grows as long as another layer brings a gain; the share that gains most,
    of those around the head's own, wins, and the next head is the layer after the chain. The gain
    counts from the head: the sum of what the layers cost one by one, less the chain's cost.
    These costs, and a head's own share, are those of the best stages of single layers.

    Source: CoDL, algorithm 1.
    """
    layers = costs.graph.layers
    unchained_us = [float("inf")] * len(layers)
    tenths: dict[int, int] = {}
    for stage in singles:
        unchained_us[stage.begin] = min(unchained_us[stage.begin], costs.alone_us(stage))
        if stage.placement == Placement.ROWS:
            tenths[stage.begin] = round(10 * stage.cut / layers[stage.begin].shape[0])
    chains: list[Stage] = []
    for head, head_tenths in tenths.items():
        if not chains or chains[-1].end <= head:
            best = _best_chain(costs, head, head_tenths, unchained_us)
            chains += [] if best is None else [best]
    return chains


def fraction_cut(size: int, fraction: float) -> int:
    """The cut nearest to a share of ``size``, so that both sides keep one at least."""
    return min(max(round(size * fraction), 1), size - 1)


def _best_chain(
    costs: StageCosts, head: int, head_tenths: int, unchained_us: Sequence[float]
) -> Stage | None:
    best: Stage | None = None
    best_gain = 0.0
    for tenths in range(max(1, head_tenths - DELTA_TENTHS), min(9, head_tenths + DELTA_TENTHS) + 1):
        last_gain = 0.0
        for end in chain_ends(costs.graph, head):
            if end == head + 1:
                continue
            cut = fraction_cut(costs.graph.layers[end - 1].shape[0], tenths / 10)
            chain = chain_stage(costs.graph, head, end, cut)
            if chain is None:
                break
            gain = sum(unchained_us[head:end]) - costs.alone_us(chain)
            if gain > best_gain:
                best, best_gain = chain, gain
            if gain < last_gain:
                break
            last_gain = gain
    return best
