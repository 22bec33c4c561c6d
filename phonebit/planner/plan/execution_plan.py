"""Who computes what of a network: the plan by which a CPU and a GPU work on one image together.

The C++ half is ``runtime/types/include/types/plan.h``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Final, NamedTuple

Shape = tuple[int, int, int]
"""Height, width, channels."""
PlanTuple = tuple[str, str, float, list[tuple[int, int, int, int, int, int, int]]]

WORD_CHANNELS: Final = 32
"""Channels of a word of packed bits. The CPU computes whole words, and only where a cut is between
words both processors may write into the same memory."""


class Processor(IntEnum):
    """A side of the device."""

    CPU = 0
    GPU = 1


class OutputPart(NamedTuple):
    """A rectangle of a layer's output, all columns; every output of the layer has the same.

    An end is one after the last row or channel.
    """

    row_begin: int
    row_end: int
    channel_begin: int
    channel_end: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.row_end - self.row_begin

    @property
    def channels(self) -> int:
        """How many."""
        return self.channel_end - self.channel_begin

    def cut(self, row: int = 0, channel: int = 0) -> tuple[OutputPart, OutputPart]:
        """What is below a row, or below a channel, and the rest."""
        if row:
            return self._replace(row_end=row), self._replace(row_begin=row)
        return self._replace(channel_end=channel), self._replace(channel_begin=channel)

    def whole_words(self, channels: int) -> OutputPart:
        """What a CPU computes of it, of so many: whole words (``runtime/analysis/op_part.cpp``)."""
        first = self.channel_begin // WORD_CHANNELS * WORD_CHANNELS
        after = -(-self.channel_end // WORD_CHANNELS) * WORD_CHANNELS
        return OutputPart(self.row_begin, self.row_end, first, min(after, channels))

    def text(self, shape: Shape) -> str:
        """``rows 0:10``, ``channels 0:64``, both, or nothing where it is the whole output."""
        height, _, channels = shape
        cuts = []
        if (self.row_begin, self.row_end) != (0, height):
            cuts.append(f"rows {self.row_begin}:{self.row_end}")
        if (self.channel_begin, self.channel_end) != (0, channels):
            cuts.append(f"channels {self.channel_begin}:{self.channel_end}")
        return " ".join(cuts)


@dataclass(frozen=True)
class PlannedPart:
    """What one processor computes of one layer.

    Args:
        stage: Stages count from 0 without gaps.
        processor: Who computes it.
        layer: Index among the file's ops, which is that of ``Network.layers``.
        part: What of the layer's output.
    """

    stage: int
    processor: Processor
    layer: int
    part: OutputPart


@dataclass(frozen=True)
class ExecutionPlan:
    """Stages that run one after the other.

    In a stage both processors run their parts, each in the order given, without waiting for each
    other; a part reads what earlier stages have completed and what the same processor wrote in the
    stage. So one layer on both is a stage (µLayer, Fine-Grained), as is a chain of layers that are
    cut by rows (CoDL), as are branches that run side by side (µLayer).

    A layer belongs to one stage. What a later stage reads, or the network gives, is covered exactly
    once by the layer's parts; other tensors are private to the processor that wrote them, and may
    overlap (a chain's halos). ``phonebit.planner.verify_plan`` checks all of this.

    Args:
        device: Key of the device profile that it was made for.
        method: "search", "ulayer", "codl", "finegrained", "combined" or "user".
        predicted_ms: Of one image; 0: not predicted.
        parts: By stage.
    """

    device: str
    method: str
    predicted_ms: float
    parts: tuple[PlannedPart, ...]

    @classmethod
    def from_tuple(cls, plan: PlanTuple) -> ExecutionPlan:
        """What the runtime gives."""
        device, method, predicted_ms, numbers = plan
        parts = [
            PlannedPart(stage, Processor(processor), layer, OutputPart(*sides))
            for stage, processor, layer, *sides in numbers
        ]
        return cls(device, method, predicted_ms, tuple(parts))

    def as_tuple(self) -> PlanTuple:
        """What the runtime takes: device, method, predicted_ms, and the parts' numbers in order."""
        parts = [(p.stage, int(p.processor), p.layer, *p.part) for p in self.parts]
        return (self.device, self.method, self.predicted_ms, parts)

    def stages(self) -> Iterator[tuple[int, list[PlannedPart]]]:
        """Each stage's number and parts, in order."""
        for stage, parts in groupby(self.parts, key=lambda part: part.stage):
            yield stage, list(parts)

    def stage_texts(self, layers: Sequence[tuple[str, Shape]]) -> list[str]:
        """Each stage in words: its layers in the order of their first parts, and who has which.

        Args:
            layers: Name and output shape of each of the network's layers, as
                ``phonebit.planner.layer_outputs`` gives them.

        Returns:
            Texts like ``conv2 gpu channels 0:64, cpu channels 64:96; pool cpu``.
        """
        stages = []
        for _, parts in self.stages():
            by_layer: dict[int, list[str]] = {}
            for planned in parts:
                cut = planned.part.text(layers[planned.layer][1])
                text = f"{planned.processor.name.lower()} {cut}".rstrip()
                by_layer.setdefault(planned.layer, []).append(text)
            texts = (f"{layers[layer][0]} {', '.join(of)}" for layer, of in by_layer.items())
            stages.append("; ".join(texts))
        return stages
