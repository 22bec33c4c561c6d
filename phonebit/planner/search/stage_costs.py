"""What stages cost: the slower processor's time, and what the processors have to transfer.

The rules of the exchange are the executor's (``runtime/coexec/schedule.cpp``): of what the other
one wrote of a tensor a processor gets only the rows and channels that it reads, and it waits only
where it reads some of them. So maps that are cut at one row exchange what windows reach over the
cut; element-wise layers and pools that are cut alike, and 1x1 convolutions at one row, do not meet.

The executor transfers at the first reader what all later ones need. Costs are added up stage by
stage and know no later readers: here each reader gets what it reads and was not transferred before.
That is the same where the next stage is a tensor's only reader, as in networks without branches.
With later readers the bytes are the same in sum, but the GPU may meet the CPU once more, where the
executor has no need to: an exchange is never taken for cheaper than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.network_graph import GraphTensor, NetworkGraph, extend
from phonebit.planner.search.part_times import PartTimes
from phonebit.planner.search.stages import LayerParts, Stage, on_one


class Transfer(NamedTuple):
    """One processor's part of a tensor, on its way to the other processor.

    What is transferred is the part's share of all rows and channels from the first to the last that
    the other one reads. So what was read is kept as one part, cut to this one: cutting first and
    spanning then gives the same as the other way round.

    Args:
        tensor: Whose part it is.
        part: What the processor wrote.
        read: Of it, what the other one has read; nothing before the first reader.
        bytes_left: Bytes that are not transferred.
    """

    tensor: GraphTensor
    part: OutputPart
    read: OutputPart
    bytes_left: int

    @classmethod
    def of(cls, tensor: GraphTensor, part: OutputPart) -> Transfer:
        """A part of which nothing is transferred yet."""
        nothing = OutputPart(part.row_end, part.row_begin, part.channel_end, part.channel_begin)
        return cls(tensor, part, nothing, tensor.part_bytes(part))

    def has(self, read: OutputPart) -> bool:
        """Whether some of this, which is not nothing, is in the part."""
        row, row_end, channel, channel_end = self.part
        rows = max(read.row_begin, row) < min(read.row_end, row_end)
        return rows and max(read.channel_begin, channel) < min(read.channel_end, channel_end)

    def transfer(self, read: OutputPart) -> Transfer:
        """What it is when the other processor has read this, too."""
        if not self.bytes_left:
            return self
        tensor, part, has, _ = self
        spans = OutputPart(
            min(has.row_begin, max(read.row_begin, part.row_begin)),
            max(has.row_end, min(read.row_end, part.row_end)),
            min(has.channel_begin, max(read.channel_begin, part.channel_begin)),
            max(has.channel_end, min(read.channel_end, part.channel_end)),
        )
        got = tensor.part_bytes(spans) if spans.rows > 0 and spans.channels > 0 else 0
        return Transfer(tensor, part, spans, tensor.part_bytes(part) - got)


class Holding(NamedTuple):
    """A tensor between two stages: what either processor may still need of the other's part.

    Args:
        for_cpu: What the GPU wrote: the CPU waits whenever it reads some of it.
        for_gpu: What the CPU wrote, until all of it is transferred: the GPU waits once.
    """

    for_cpu: Transfer | None
    for_gpu: Transfer | None


State = tuple[tuple[int, Holding], ...]
"""Tensors that later stages read, ascending by index."""


@dataclass(frozen=True)
class _Use:
    """What a stage reads of earlier ones and leaves to later ones, and how long it works."""

    cpu_reads: Mapping[int, OutputPart]
    gpu_reads: Mapping[int, OutputPart]
    written: tuple[tuple[int, Holding], ...]
    work_us: float


class StageCosts:
    """Costs of stages; asks for the times of each part once."""

    def __init__(self, graph: NetworkGraph, times: PartTimes, sharing: SharingCost) -> None:
        self.graph = graph
        self._times = times
        self.sharing = sharing
        self._parts: dict[LayerParts, tuple[float, float]] = {}
        self._use = cache(self._find_use)
        self.single_us = {
            side: [self.work_us(stage) for stage in self.single_processor(side)]
            for side in Processor
        }
        """Microseconds of each layer as a whole, on either processor."""

    def part_times(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Times of the CPU and the GPU for parts of one layer; all new ones are asked at once."""
        new = [entry for entry in dict.fromkeys(parts) if entry not in self._parts]
        if new:
            self._parts.update(zip(new, self._times.microseconds(new), strict=True))
        return [self._parts[entry] for entry in parts]

    def work_us(self, stage: Stage) -> float:
        """The slower processor's time: both run their own parts without waiting for each other."""
        return self._use(stage).work_us

    def better_single_us(self, stage: Stage) -> float:
        """The stage's layers on the processor that is faster for all of them together."""
        layers = slice(stage.begin, stage.end)
        return min(sum(of_side[layers]) for of_side in self.single_us.values())

    def alone_us(self, stage: Stage) -> float:
        """A stage between others on the GPU: what it reads comes from there, results go there.

        Source: CoDL, eq. 2; Fine-Grained, section 2.
        """
        use = self._use(stage)
        tensors = self.graph.tensors
        to_cpu = sum(tensors[tensor].part_bytes(read) for tensor, read in use.cpu_reads.items())
        to_gpu = sum(held.for_gpu.bytes_left for _, held in use.written if held.for_gpu)
        shared = self.sharing.microseconds(to_cpu, to_gpu) if to_cpu or to_gpu else 0.0
        return shared + use.work_us

    def first_state(self) -> State:
        """Before the first stage: inputs come from the CPU."""
        tensors = self.graph.tensors
        return tuple(
            (index, Holding(None, Transfer.of(tensors[index], tensors[index].whole)))
            for index in sorted(self.graph.last_reader.keys() & set(self.graph.inputs))
        )

    def advance(self, state: State, stage: Stage) -> tuple[State, float]:
        """Runs a stage after others.

        Returns:
            What is left after it, and its microseconds with those of the synchronization before it.
        """
        use = self._use(stage)
        to_cpu, to_gpu, waits, left = 0, 0, False, []
        for tensor, (for_cpu, for_gpu) in state:
            read = use.cpu_reads.get(tensor)
            if for_cpu is not None and read is not None:
                waits = waits or for_cpu.has(read)
                before, for_cpu = for_cpu, for_cpu.transfer(read)
                to_cpu += before.bytes_left - for_cpu.bytes_left
            read = use.gpu_reads.get(tensor)
            if for_gpu is not None and read is not None:
                before, for_gpu = for_gpu, for_gpu.transfer(read)
                to_gpu += before.bytes_left - for_gpu.bytes_left
                for_gpu = for_gpu if for_gpu.bytes_left else None
            if self.graph.last_reader[tensor] >= stage.end:
                left.append((tensor, Holding(for_cpu, for_gpu)))
        meets = waits or to_cpu > 0 or to_gpu > 0
        shared = self.sharing.microseconds(to_cpu, to_gpu) if meets else 0.0
        return tuple(sorted(left + list(use.written))), shared + use.work_us

    def finish(self, state: State) -> float:
        """Microseconds until the CPU has the outputs."""
        by_gpu = [held.for_cpu for _, held in state if held.for_cpu is not None]
        to_cpu = sum(part.bytes_left for part in by_gpu)
        return self.sharing.microseconds(to_cpu, 0) if by_gpu else 0.0

    def stage_us(self, stages: Iterable[Stage]) -> list[float]:
        """Each stage's time with the wait before it, then the time until the CPU has it all."""
        state, times = self.first_state(), []
        for stage in stages:
            state, stage_us = self.advance(state, stage)
            times.append(stage_us)
        return [*times, self.finish(state)]

    def total_us(self, stages: Iterable[Stage]) -> float:
        """Microseconds of a whole network."""
        return sum(self.stage_us(stages))

    def single_processor(self, processor: Processor) -> list[Stage]:
        """All layers on one processor."""
        return [on_one(layer, processor) for layer in self.graph.layers]

    def _find_use(self, stage: Stage) -> _Use:
        reads: dict[Processor, dict[int, OutputPart]] = {side: {} for side in Processor}
        written = []
        for entry in stage.parts:
            layer = self.graph.layers[entry.layer]
            for side, part in entry.sides:
                computed = part.whole_words(layer.shape[2]) if side == Processor.CPU else part
                for tensor, read in self.graph.parts_read(layer, computed):
                    if self.graph.writer.get(tensor, -1) < stage.begin:
                        extend(reads[side], tensor, read)
            for tensor in layer.outputs:
                if self.graph.last_reader.get(tensor, -1) >= stage.end:
                    of = self.graph.tensors[tensor]
                    sides = (part and Transfer.of(of, part) for part in (entry.gpu, entry.cpu))
                    written.append((tensor, Holding(*sides)))
        times = [self.part_times([entry])[0] for entry in stage.parts]
        work_us = max(sum(cpu for cpu, _ in times), sum(gpu for _, gpu in times))
        return _Use(reads[Processor.CPU], reads[Processor.GPU], tuple(written), work_us)
