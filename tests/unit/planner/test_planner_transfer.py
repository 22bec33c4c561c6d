"""What stages transfer: what is read, as the executor does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phonebit.converter.ir import Window
from phonebit.converter.ops import MaxPool2D
from phonebit.format.contents import FileContents
from phonebit.planner import OutputPart, Processor
from phonebit.planner.search.branches import branch_regions, branch_stages
from phonebit.planner.search.chains import chain_ends, chain_stage
from phonebit.planner.search.network_graph import GraphLayer, GraphTensor, NetworkGraph
from phonebit.planner.search.stage_costs import StageCosts, Transfer
from phonebit.planner.search.stages import Placement, Stage, cut_in_two, on_one
from support.engine_net import Net, sign_of
from support.planner_times import (
    AnalyticTimes,
    Speed,
    contents_of,
    conv,
    forked,
    residual,
    straight,
)

GPU, CPU = Processor.GPU, Processor.CPU
BITS_ROW = 16 * 64 // 8
"""Bytes of a row of 16 pixels with 64 channels as bits."""
FLOATS_ROW = 16 * 64 * 4


@dataclass
class Transfers:
    """Keeps what each synchronization transfers: bytes to the CPU, bytes to the GPU."""

    handed: list[tuple[int, int]] = field(default_factory=list)

    def microseconds(self, bytes_to_cpu: int, bytes_to_gpu: int) -> float:
        self.handed.append((bytes_to_cpu, bytes_to_gpu))
        return 0.0


def costs_of(graph: NetworkGraph, transfers: Transfers) -> StageCosts:
    return StageCosts(graph, AnalyticTimes(graph, Speed(1, 1), Speed(1, 1)), transfers)


def stage_costs(contents: FileContents) -> tuple[StageCosts, Transfers]:
    transfers = Transfers()
    return costs_of(NetworkGraph.of(contents), transfers), transfers


def transferred(
    contents: FileContents, stages: Callable[[NetworkGraph], Sequence[Stage]]
) -> list[tuple[int, int]]:
    costs, transfers = stage_costs(contents)
    costs.total_us(stages(costs.graph))
    return transfers.handed


def at_rows(*cuts: int) -> Callable[[NetworkGraph], list[Stage]]:
    """Each layer cut at a row."""

    def stages(graph: NetworkGraph) -> list[Stage]:
        layers = zip(graph.layers, cuts, strict=True)
        return [cut_in_two(layer, Placement.ROWS, cut) for layer, cut in layers]

    return stages


def test_convolutions_cut_at_one_row_exchange_their_halos() -> None:
    upload, halo = (0, 6 * FLOATS_ROW), (BITS_ROW, BITS_ROW)
    result = (6 * BITS_ROW, 0)
    handed = transferred(straight(3), at_rows(6, 6, 6, 6))
    assert handed == [upload, halo, halo, halo, result]


def test_convolutions_cut_at_other_rows_exchange_what_lies_between() -> None:
    handed = transferred(straight(3), at_rows(6, 6, 9, 5))
    assert handed[2:4] == [(0, 4 * BITS_ROW), (5 * BITS_ROW, 0)]


def pointwise() -> FileContents:
    """A convolution, one with a window of one pixel, and a pool."""
    net = Net("pointwise")
    bits = sign_of(net, net.input("x", (16, 16, 64)))
    bits = conv(net, "conv", bits, 64)
    bits = conv(net, "pointwise", bits, 64, Window((1, 1)))
    return contents_of(net.done(net.op("pool", MaxPool2D(Window((2, 2), (2, 2))), bits)))


def test_one_by_one_windows_and_pools_cut_alike_do_not_meet() -> None:
    contents = pointwise()
    upload, halo, result = (0, 6 * FLOATS_ROW), (BITS_ROW, BITS_ROW), (3 * BITS_ROW // 2, 0)
    assert transferred(contents, at_rows(6, 6, 6, 3)) == [upload, halo, result]
    # A pool that is cut elsewhere: its CPU's part reads two rows of the GPU's.
    wider = transferred(contents, at_rows(6, 6, 6, 2))
    assert wider == [upload, halo, (2 * BITS_ROW, 0), (2 * BITS_ROW // 2, 0)]


def at_channels(*cuts: int) -> Callable[[NetworkGraph], list[Stage]]:
    """Each layer cut at a channel."""

    def stages(graph: NetworkGraph) -> list[Stage]:
        layers = zip(graph.layers, cuts, strict=True)
        return [cut_in_two(layer, Placement.CHANNELS, cut) for layer, cut in layers]

    return stages


def test_pools_cut_at_their_operands_channels_do_not_meet() -> None:
    contents = pointwise()
    alike = transferred(contents, at_channels(32, 32, 32, 32))
    half = 16 * BITS_ROW // 2
    upload = (0, 16 * FLOATS_ROW // 2)
    assert alike == [upload, (half, half), (half, half), (half // 4, 0)]
    # A pool that is cut elsewhere: its GPU's part reads sixteen channels of the CPU's.
    higher = transferred(contents, at_channels(32, 32, 32, 48))
    assert higher[3:] == [(0, half // 2), (3 * half // 8, 0)]
    # Inside a word: the CPU computes it whole, and reads eight channels of the GPU's.
    inside = transferred(contents, at_channels(32, 32, 40, 40))
    assert inside[3:] == [(half // 4, 0), (5 * half // 16, 0)]


def test_channel_parts_are_transferred_by_rows_too() -> None:
    def stages(graph: NetworkGraph) -> list[Stage]:
        sign, first, second = graph.layers
        by_channels = cut_in_two(first, Placement.CHANNELS, 16)
        return [on_one(sign, GPU), by_channels, cut_in_two(second, Placement.ROWS, 6)]

    handed = transferred(straight(2), stages)
    assert handed[2] == (11 * BITS_ROW // 4, 7 * BITS_ROW * 3 // 4)


@pytest.mark.parametrize(
    ("cut", "to_block0", "to_block1"),
    [
        (6, (BITS_ROW, BITS_ROW), (BITS_ROW, BITS_ROW)),
        (8, (0, 3 * BITS_ROW + 2 * FLOATS_ROW), (3 * BITS_ROW + 2 * FLOATS_ROW, 0)),
        (4, (3 * BITS_ROW, 0), (0, 3 * BITS_ROW + 2 * FLOATS_ROW)),
    ],
)
def test_a_residual_gets_the_rows_that_are_missing(
    cut: int, to_block0: tuple[int, int], to_block1: tuple[int, int]
) -> None:
    """The first block adds the input, of which the GPU has six rows since the sign's stage."""
    handed = transferred(residual(2), at_rows(6, cut, 6, 3, 3))
    assert handed[:3] == [(0, 6 * FLOATS_ROW), to_block0, to_block1]


def test_the_cpu_waits_for_a_tensor_at_each_reader_and_the_gpu_once() -> None:
    """Both branches read the sign's bits."""

    def handed(sign: Processor, others: Processor) -> list[tuple[int, int]]:
        sides = (sign, others, others, others, others, others)
        return transferred(
            forked(2, size=16),
            lambda graph: [on_one(*pair) for pair in zip(graph.layers, sides, strict=True)],
        )

    upload, bits = 16 * FLOATS_ROW, 16 * BITS_ROW
    assert handed(GPU, CPU) == [(0, upload), (bits, 0), (0, 0)]
    assert handed(CPU, GPU) == [(0, bits), (bits, 0)]


def test_a_layer_alone_reads_its_rows_from_the_gpu() -> None:
    costs, transfers = stage_costs(straight(1))
    by_rows = cut_in_two(costs.graph.layers[1], Placement.ROWS, 6)
    by_channels = cut_in_two(costs.graph.layers[1], Placement.CHANNELS, 16)
    costs.alone_us(by_rows)
    costs.alone_us(by_channels)
    costs.alone_us(on_one(costs.graph.layers[1], GPU))
    assert transfers.handed == [
        (11 * BITS_ROW, 10 * BITS_ROW),
        (16 * BITS_ROW, 16 * BITS_ROW * 3 // 4),
    ]


RANGES = st.tuples(st.integers(0, 19), st.integers(1, 9)).map(lambda at: (at[0], sum(at)))


@given(st.tuples(RANGES, RANGES), st.lists(st.tuples(RANGES, RANGES), max_size=5))
def test_a_parts_share_of_what_readers_span_is_transferred(
    sides: tuple[tuple[int, int], tuple[int, int]],
    reads: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    part = OutputPart(*sides[0], *sides[1])
    handover = Transfer.of(GraphTensor(30, 3, 30, 32), part)
    total = handover.bytes_left
    assert total == part.rows * 3 * part.channels * 4
    for rows, channels in reads:
        handover = handover.transfer(OutputPart(*rows, *channels))
    shared = 3 * 4
    for side, (begin, end) in enumerate(sides):
        first = min((read[side][0] for read in reads), default=99)
        after = max((read[side][1] for read in reads), default=0)
        shared *= max(min(end, after) - max(begin, first), 0)
    assert total - handover.bytes_left == shared


class Executor:
    """The executor's rules, with all readers known: ``runtime/coexec/schedule.cpp``."""

    def __init__(self, graph: NetworkGraph, stages: Sequence[Stage]) -> None:
        self.graph = graph
        self.stages = stages
        whole = {tensor: self.whole(tensor) for tensor in graph.inputs}
        self.written: dict[Processor, dict[int, OutputPart]] = {CPU: whole, GPU: {}}
        self.stage_of = dict.fromkeys(graph.inputs, -1)
        self.read: dict[Processor, dict[int, list[OutputPart]]] = {CPU: {}, GPU: {}}
        for number, stage in enumerate(stages):
            for entry in stage.parts:
                for side, part in entry.sides:
                    for tensor in graph.layers[entry.layer].outputs:
                        self.written[side][tensor] = part
                        self.stage_of[tensor] = number
        for number in range(len(stages)):
            for side in Processor:
                for tensor, read in self.reads(number, side):
                    self.read[side].setdefault(tensor, []).append(read)
        for tensor in graph.outputs:
            self.read[CPU][tensor] = [self.whole(tensor)]

    def whole(self, tensor: int) -> OutputPart:
        of = self.graph.tensors[tensor]
        return OutputPart(0, of.height, 0, of.channels)

    def reads(self, number: int, side: Processor) -> Iterator[tuple[int, OutputPart]]:
        """Parts of tensors of earlier stages. The CPU computes whole words."""
        for entry in self.stages[number].parts:
            part = dict(entry.sides).get(side)
            if part is None:
                continue
            layer = self.graph.layers[entry.layer]
            if side == CPU:
                first, channels = part.channel_begin // 32 * 32, layer.shape[2]
                after = min((part.channel_end + 31) // 32 * 32, channels)
                part = part._replace(channel_begin=first, channel_end=after)
            for tensor, read in self.graph.parts_read(layer, part):
                if self.stage_of[tensor] < number and read.rows:
                    yield tensor, read

    def of_other(self, side: Processor, tensor: int, reads: Sequence[OutputPart]) -> OutputPart:
        """Of what the other one wrote, what reads span: no rows or channels where that is none."""
        part = self.written[GPU if side == CPU else CPU].get(tensor, OutputPart(0, 0, 0, 0))
        sides = list(zip(part, *reads, strict=True))
        first_row, first = (max(part, min(reads)) for part, *reads in sides[::2])
        last_row, last = (min(part, max(reads)) for part, *reads in sides[1::2])
        return OutputPart(first_row, max(first_row, last_row), first, max(first, last))

    def bytes_to(self, side: Processor) -> int:
        return sum(
            self.graph.tensors[tensor].part_bytes(self.of_other(side, tensor, reads))
            for tensor, reads in self.read[side].items()
        )

    def transfers(self) -> int:
        count, handed = 0, -2
        for number in range(len(self.stages)):
            waits = {
                side: [
                    self.stage_of[tensor]
                    for tensor, read in self.reads(number, side)
                    if self.graph.tensors[tensor].part_bytes(self.of_other(side, tensor, [read]))
                ]
                for side in Processor
            }
            waits_for = max(waits[GPU], default=-2)
            count += bool(waits[CPU]) or waits_for > handed
            handed = max(handed, waits_for)
        return count + any(tensor in self.written[GPU] for tensor in self.graph.outputs)


def stages_from(graph: NetworkGraph, begin: int) -> list[Stage]:
    """Of all kinds; few cuts, so that layers are often cut alike."""

    def row_cuts(layer: GraphLayer) -> set[int]:
        return {max(1, layer.shape[0] * quarters // 4) for quarters in (1, 2, 3)}

    layer = graph.layers[begin]
    stages = [on_one(layer, side) for side in Processor]
    if layer.geometry.can_cut_rows:
        stages += [cut_in_two(layer, Placement.ROWS, cut) for cut in sorted(row_cuts(layer))]
    if layer.geometry.can_cut_channels:
        channels = sorted({layer.shape[2] // 2, 8})
        stages += [cut_in_two(layer, Placement.CHANNELS, cut) for cut in channels]
    for end in chain_ends(graph, begin):
        if end > begin + 1:
            cuts = sorted(row_cuts(graph.layers[end - 1]))
            chains = [chain_stage(graph, begin, end, cut) for cut in cuts]
            stages += [chain for chain in chains if chain is not None]
    for region in branch_regions(graph):
        if min(region)[0] == begin:
            stages += branch_stages(costs_of(graph, Transfers()), region)
    return stages


def all_plans(graph: NetworkGraph, begin: int = 0) -> Iterator[list[Stage]]:
    if begin == len(graph.layers):
        yield []
        return
    for stage in stages_from(graph, begin):
        for rest in all_plans(graph, stage.end):
            yield [stage, *rest]


@st.composite
def staged(draw: st.DrawFn, contents: FileContents) -> tuple[NetworkGraph, list[Stage]]:
    """Any plan of a network."""
    graph = NetworkGraph.of(contents)
    stages: list[Stage] = []
    while not stages or stages[-1].end < len(graph.layers):
        offers = stages_from(graph, stages[-1].end if stages else 0)
        stages.append(draw(st.sampled_from(offers)))
    return graph, stages


def check(graph: NetworkGraph, stages: list[Stage], is_linear: bool) -> None:
    transfers = Transfers()
    costs_of(graph, transfers).total_us(stages)
    executor = Executor(graph, stages)
    to_cpu, to_gpu = (sum(handed[side] for handed in transfers.handed) for side in (0, 1))
    assert (to_cpu, to_gpu) == (executor.bytes_to(CPU), executor.bytes_to(GPU))
    assert len(transfers.handed) >= executor.transfers()
    if is_linear:
        assert len(transfers.handed) == executor.transfers()


@pytest.mark.parametrize("contents", [straight(2, channels=16, size=9), pointwise()])
def test_layers_in_a_row_cost_what_they_do_with_the_executor(contents: FileContents) -> None:
    graph = NetworkGraph.of(contents)
    for stages in all_plans(graph):
        check(graph, stages, is_linear=True)


@given(st.one_of(staged(residual(4, channels=16, size=9)), staged(forked(3, channels=16))))
def test_other_networks_never_cost_less_than_with_the_executor(
    plan: tuple[NetworkGraph, list[Stage]],
) -> None:
    check(*plan, is_linear=False)
