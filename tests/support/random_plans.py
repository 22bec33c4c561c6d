"""Random plans of any network: row and channel cuts, chains with halos, branches, whole layers.

``random_plan`` draws from nearly all plans that are valid: layers in any order that their tensors
allow, stages of any length, in each stage any number of independent groups of layers, and each
group on one processor or cut. ``damaged`` changes a plan a little, mostly so that it is valid no
more.

Written on its own from docs/format.md, so that it is evidence for ``verify_plan`` and for the
runtime's check, not a copy of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from phonebit.format.contents import FileContents
from phonebit.format.records import OpKind, StepKind
from phonebit.planner import ExecutionPlan, OutputPart, PlannedPart, Processor

Random = np.random.Generator
CPU, GPU = Processor.CPU, Processor.GPU
GRAIN: Final = 8
MAX_STAGE_LAYERS: Final = 7
CONVOLUTIONS: Final = (OpKind.BINARY_CONV2D, OpKind.CONV2D)
SAME_CHANNELS: Final = (OpKind.MAX_POOL2D, OpKind.AVERAGE_POOL2D, OpKind.ELEMENTWISE)
WINDOWS: Final = (
    *CONVOLUTIONS, OpKind.BINARY_DEPTHWISE_CONV2D, OpKind.MAX_POOL2D, OpKind.AVERAGE_POOL2D,
)  # fmt: skip


Needs = dict[Processor, tuple[set[int], set[int]]]
"""Rows and channels of a layer's outputs."""


class NoChainError(Exception):
    """These layers cannot be shared by both processors in one stage in the way that was drawn."""


@dataclass
class Layer:
    """One op: its output, whom it reads, and which rows."""

    kind: OpKind
    op: np.void
    height: int
    channels: int
    outputs: list[int]
    operands: list[int]
    step_tensors: list[int]
    is_output: bool
    readers: list[int] = field(default_factory=list)

    @property
    def cuts_rows(self) -> bool:
        return self.kind != OpKind.RESHAPE and self.height > 1

    @property
    def cuts_channels(self) -> bool:
        is_conv = self.kind in CONVOLUTIONS and self.op["groups"] == 1
        return (is_conv or self.kind in SAME_CHANNELS) and self.channels > GRAIN


class Layers:
    """The layers of a file and who reads whom."""

    def __init__(self, contents: FileContents) -> None:
        self.heights = [int(tensor["height"]) for tensor in contents.tensors]
        self.channels = [int(tensor["channels"]) for tensor in contents.tensors]
        self.all = [self._layer(contents, op) for op in contents.ops]
        self.writer = {tensor: i for i, layer in enumerate(self.all) for tensor in layer.outputs}
        for i in range(len(self.all)):
            for writer in self.sources(i):
                self.all[writer].readers.append(i)

    def _layer(self, contents: FileContents, op: np.void) -> Layer:
        outputs = list(contents.outputs_of(op))
        first, first_step = int(op["operand_begin"]), int(op["step_begin"])
        steps = contents.steps[first_step : first_step + int(op["step_count"])]
        return Layer(
            OpKind(int(op["kind"])),
            op,
            self.heights[outputs[0]],
            int(contents.tensors[outputs[0]]["channels"]),
            outputs,
            contents.operands[first : first + int(op["operand_count"])].tolist(),
            [int(s["tensor"]) for s in steps if s["kind"] in (StepKind.ADD, StepKind.MULTIPLY)],
            not set(outputs).isdisjoint(contents.outputs.tolist()),
        )

    def sources(self, index: int) -> set[int]:
        """Layers that write what this one reads."""
        layer = self.all[index]
        read = layer.operands + layer.step_tensors
        return {self.writer[tensor] for tensor in read if tensor in self.writer}

    def rows_read(self, index: int, tensor: int, rows: range) -> set[int]:
        """Rows of a tensor that any tap of these output rows reads, and those between taps."""
        layer, height = self.all[index], self.heights[tensor]
        if layer.kind == OpKind.RESHAPE:
            return set(range(height))
        read: set[int] = set()
        if tensor in layer.step_tensors:
            read |= {0} if height == 1 else set(rows)
        if tensor in layer.operands and layer.kind in WINDOWS:
            op = layer.op
            span = (int(op["kernel_h"]) - 1) * int(op["dilation_h"]) + 1
            for row in rows:
                top = row * int(op["stride_h"]) - int(op["pad_top"])
                read |= set(range(top, top + span))
        elif tensor in layer.operands:
            top = int(layer.op["pad_top"]) if layer.kind == OpKind.PAD else 0
            read |= {row - top for row in rows}
        return {row for row in read if 0 <= row < height}

    def channels_read(self, index: int, tensor: int, channels: range) -> set[int]:
        """Channels of a tensor that these output channels come from."""
        layer = self.all[index]
        if tensor in layer.operands and layer.kind not in SAME_CHANNELS:
            return set(range(self.channels[tensor]))
        return set(channels)


def random_plan(contents: FileContents, random: Random, device: str = "random") -> ExecutionPlan:
    """A valid plan.

    Args:
        contents: Any sound file.
        random: Decides everything.
        device: Of the plan.
    """
    layers = Layers(contents)
    order = _random_order(layers, random)
    parts: list[PlannedPart] = []
    stage = 0
    while order:
        # Single layers are what µLayer and Fine-Grained plan; long stages hold chains and branches.
        count = 1 if random.random() < 0.3 else int(random.integers(1, MAX_STAGE_LAYERS + 1))
        members, order = order[:count], order[count:]
        parts += _stage(layers, members, stage, random)
        stage += 1
    return ExecutionPlan(device, "user", 0.0, tuple(parts))


def whole_plan(contents: FileContents, processor: Processor) -> ExecutionPlan:
    """Every layer on one processor, in one stage."""
    every = enumerate(Layers(contents).all)
    parts = [PlannedPart(0, processor, index, _whole(layer)) for index, layer in every]
    return ExecutionPlan("whole", "user", 0.0, tuple(parts))


def _whole(layer: Layer) -> OutputPart:
    return OutputPart(0, layer.height, 0, layer.channels)


def _random_order(layers: Layers, random: Random) -> list[int]:
    """That of the file, or any other in which each layer comes after those that it reads."""
    if random.random() < 0.5:
        return list(range(len(layers.all)))
    waiting = {index: set(layers.sources(index)) for index in range(len(layers.all))}
    order: list[int] = []
    while waiting:
        ready = [index for index, sources in waiting.items() if not sources]
        chosen = int(random.choice(ready))
        del waiting[chosen]
        for sources in waiting.values():
            sources.discard(chosen)
        order.append(chosen)
    return order


def _stage(layers: Layers, members: list[int], stage: int, random: Random) -> list[PlannedPart]:
    """Each group of layers that read each other is planned by itself."""
    chosen: dict[int, dict[Processor, OutputPart]] = {}
    for group in _groups(layers, members):
        try:
            if random.random() < 0.4:
                raise NoChainError
            chosen |= _shared_group(layers, group, random)
        except NoChainError:
            processor = Processor(int(random.integers(2)))
            chosen |= {index: {processor: _whole(layers.all[index])} for index in group}
    parts = [
        PlannedPart(stage, processor, index, part)
        for index in members
        for processor, part in chosen[index].items()
    ]
    if random.random() < 0.3:  # only the order on each processor matters
        parts.sort(key=lambda part: part.processor)
    return parts


def _groups(layers: Layers, members: list[int]) -> list[list[int]]:
    """Connected by what they read from each other in the stage."""
    group_of = {index: {index} for index in members}
    for index in members:
        for source in layers.sources(index) & set(members):
            joined = group_of[index] | group_of[source]
            for other in joined:
                group_of[other] = joined
    unique = {min(group): group for group in group_of.values()}
    return [[index for index in members if index in group] for group in unique.values()]


def _shared_group(
    layers: Layers, group: list[int], random: Random
) -> dict[int, dict[Processor, OutputPart]]:
    """Both processors share it: from the last layer back to the first, each gets what it needs.

    Raises:
        NoChainError: A layer that others need whole would be computed twice.
    """
    parts: dict[int, dict[Processor, OutputPart]] = {}
    for index in reversed(group):
        layer = layers.all[index]
        needs = {
            processor: _needed(layers, index, group, parts, processor) for processor in Processor
        }
        is_published = layer.is_output or any(reader not in group for reader in layer.readers)
        if not any(rows for rows, _ in needs.values()):
            parts[index] = _free_cut(layer, random)
        elif is_published:
            parts[index] = _exact_cut(layer, needs, random)
        else:
            parts[index] = {
                processor: _private_part(layer, *needed, random)
                for processor, needed in needs.items()
                if needed[0]
            }
    return parts


def _needed(
    layers: Layers,
    index: int,
    group: list[int],
    parts: dict[int, dict[Processor, OutputPart]],
    processor: Processor,
) -> tuple[set[int], set[int]]:
    """Rows and channels of a layer's outputs that this processor reads later in the stage."""
    rows: set[int] = set()
    channels: set[int] = set()
    for reader in group:
        part = parts.get(reader, {}).get(processor)
        if part is None:
            continue
        layer = layers.all[reader]
        for tensor in {*layer.operands, *layer.step_tensors} & set(layers.all[index].outputs):
            rows |= layers.rows_read(reader, tensor, range(part.row_begin, part.row_end))
            of_part = range(part.channel_begin, part.channel_end)
            channels |= layers.channels_read(reader, tensor, of_part)
    return rows, channels


def _free_cut(layer: Layer, random: Random) -> dict[Processor, OutputPart]:
    """Between rows, between channels, or on one processor."""
    whole = _whole(layer)
    cuts = [name for name in ("rows", "channels") if getattr(layer, f"cuts_{name}")]
    choice = str(random.choice([*cuts, *cuts, *cuts, "one"]))
    if choice == "rows":
        return _rows_at(layer, int(random.integers(1, layer.height)))
    if choice == "channels":
        return _channels_at(layer, GRAIN * int(random.integers(1, -(-layer.channels // GRAIN))))
    return {Processor(int(random.integers(2))): whole}


def _channels_at(layer: Layer, cut: int) -> dict[Processor, OutputPart]:
    """The GPU has the channels before the cut."""
    whole = _whole(layer)
    return {GPU: whole._replace(channel_end=cut), CPU: whole._replace(channel_begin=cut)}


def _rows_at(layer: Layer, cut: int) -> dict[Processor, OutputPart]:
    """The GPU has the rows before the cut; a processor without rows has no part."""
    whole = _whole(layer)
    sides = {GPU: whole._replace(row_end=cut), CPU: whole._replace(row_begin=cut)}
    return {side: part for side, part in sides.items() if part.row_begin < part.row_end}


def _exact_cut(layer: Layer, needs: Needs, random: Random) -> dict[Processor, OutputPart]:
    """Every row or channel once, so that each processor has what it needs itself."""
    (of_cpu, channels_of_cpu), (of_gpu, channels_of_gpu) = needs[CPU], needs[GPU]
    lowest, highest = max(of_gpu, default=-1) + 1, min(of_cpu, default=layer.height)
    if lowest <= highest and layer.cuts_rows:
        return _rows_at(layer, int(random.integers(lowest, highest + 1)))
    if not (of_cpu and of_gpu) and not layer.cuts_rows:
        return {GPU if of_gpu else CPU: _whole(layer)}
    first = max(channels_of_gpu, default=-1) + 1
    after = min(channels_of_cpu, default=layer.channels)
    cuts = [cut for cut in range(GRAIN, layer.channels, GRAIN) if first <= cut <= after]
    if not cuts or not layer.cuts_channels:
        raise NoChainError
    return _channels_at(layer, int(random.choice(cuts)))


def _private_part(layer: Layer, rows: set[int], channels: set[int], random: Random) -> OutputPart:
    """At least these rows and channels, sometimes more than needed."""
    begin, end = min(rows), max(rows) + 1
    if not layer.cuts_rows:
        begin, end = 0, layer.height
    if random.random() < 0.2:
        begin = int(random.integers(0, begin + 1))
        end = int(random.integers(end, layer.height + 1))
    part = _whole(layer)._replace(row_begin=begin, row_end=end)
    if not layer.cuts_channels or random.random() < 0.2:
        return part
    first = min(channels) // GRAIN * GRAIN
    after = min(-(-(max(channels) + 1) // GRAIN) * GRAIN, layer.channels)
    return part._replace(channel_begin=first, channel_end=after)


def halves_plan(contents: FileContents, by_rows: bool) -> ExecutionPlan:
    """Every layer that can be is cut in the middle; the GPU has the others."""
    layers, parts = Layers(contents).all, []
    for planned in whole_plan(contents, GPU).parts:
        layer, whole = layers[planned.layer], planned.part
        row, channel = whole.row_end // 2, whole.channel_end // 2 // GRAIN * GRAIN
        cuts: tuple[OutputPart, ...] = (whole,)
        if by_rows and layer.cuts_rows:
            cuts = (whole._replace(row_end=row), whole._replace(row_begin=row))
        elif not by_rows and channel > 0 and layer.cuts_channels:
            cuts = (whole._replace(channel_end=channel), whole._replace(channel_begin=channel))
        for processor, cut in zip((GPU, CPU), cuts, strict=False):
            parts.append(PlannedPart(planned.layer, processor, planned.layer, cut))
    return ExecutionPlan("test", "user", 0.0, tuple(parts))


def damaged(plan: ExecutionPlan, random: Random) -> ExecutionPlan:
    """One to two changes: numbers, processors, stages, parts left out, repeated or exchanged."""
    parts = list(plan.parts)
    for _ in range(int(random.integers(1, 3))):
        at, other = (int(random.integers(len(parts))) for _ in range(2))
        change = int(random.integers(8))
        planned = parts[at]
        if change == 0 and len(parts) > 1:
            del parts[at]
        elif change == 1:
            parts.insert(other, planned)
        elif change == 2:
            parts[at], parts[other] = parts[other], parts[at]
        elif change == 3:
            parts[at] = replace(planned, processor=Processor(1 - planned.processor))
        elif change == 4:
            after = int(random.choice([-1, 1]))
            parts = [
                replace(part, stage=part.stage + after) if number >= at else part
                for number, part in enumerate(parts)
            ]
        elif change == 5:
            parts[at] = replace(planned, layer=parts[other].layer)
        else:
            side = str(random.choice(["row_begin", "row_end", "channel_begin", "channel_end"]))
            moved = getattr(planned.part, side) + int(random.choice([-8, -3, -1, 1, 2, 8]))
            parts[at] = replace(planned, part=planned.part._replace(**{side: moved}))
    return replace(plan, parts=tuple(parts))
