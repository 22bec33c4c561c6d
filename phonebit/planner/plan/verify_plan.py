"""Whether a plan can be executed: an implementation of its own, from docs/format.md.

It shares nothing with the planner, whose plans it judges, nor with the runtime's
``analysis/plan_check.cpp``, which tests hold against it.
"""

from __future__ import annotations

from typing import Final, NoReturn

from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.records import OpKind
from phonebit.planner.plan.execution_plan import ExecutionPlan, OutputPart, PlannedPart, Processor
from phonebit.planner.plan.operators import CHANNELS_READ, CUTS, ROWS_READ, cuts_channels

CHANNEL_GRAIN: Final = 8
"""Channels are cut at multiples of this, so that both processors write whole bytes of bits."""

_HINT: Final = "plan the network again"


def verify_plan(contents: FileContents, plan: ExecutionPlan) -> None:
    """Checks that a plan computes a network's outputs, each layer once and from what is there.

    Args:
        contents: The network, as ``phonebit.format.reader.read_contents`` gives it.
        plan: For this network.

    Raises:
        InputError: It breaks a rule of ``ExecutionPlan``, or splits a layer where it cannot be
            split; the first problem is named.
    """
    _Verifier(contents, plan).run()


class _Layer:
    """What the rules ask of one op."""

    def __init__(self, contents: FileContents, index: int) -> None:
        op = contents.ops[index]
        self.index, self.kind, self._op = index, OpKind(int(op["kind"])), op
        self.cuts_channels = cuts_channels(self.kind, int(op["groups"]))
        self.name = contents.name(int(op["name_offset"]))
        self.height, _, self.channels = contents.output_shape(op)
        self.operands, self.step_tensors = contents.operands_of(op), contents.step_tensors_of(op)
        self.outputs = contents.outputs_of(op)

    def text(self) -> str:
        return f"layer {self.index} '{self.name}' ({self.kind.name.lower()})"

    def rows_under(self, part: OutputPart) -> tuple[int, int]:
        """Rows of the operands that the part's rows come from, beyond the map's edges, too."""
        fields = ("kernel_h", "stride_h", "dilation_h", "pad_top")
        kernel, stride, dilation, pad = (int(self._op[field]) for field in fields)
        if ROWS_READ[self.kind] == "window":
            first = part.row_begin * stride - pad
            last = (part.row_end - 1) * stride - pad + (kernel - 1) * dilation
            return first, last + 1
        shift = pad if ROWS_READ[self.kind] == "padded" else 0
        return part.row_begin - shift, part.row_end - shift


class _Verifier:
    def __init__(self, contents: FileContents, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.names = [contents.name(int(record["name_offset"])) for record in contents.tensors]
        self.heights = [int(record["height"]) for record in contents.tensors]
        self.channels = [int(record["channels"]) for record in contents.tensors]
        self.outputs = {int(index) for index in contents.outputs}
        self.layers = [_Layer(contents, index) for index in range(len(contents.ops))]
        self.writer = {tensor: layer for layer in self.layers for tensor in layer.outputs}
        self.parts_of: dict[int, list[PlannedPart]] = {}
        self.last_read: dict[int, int] = {}  # the last stage that reads a tensor
        self.written: dict[tuple[Processor, int], OutputPart] = {}  # so far, by the plan's order

    def run(self) -> None:
        for number, planned in enumerate(self.plan.parts):
            self._check_place(number, planned)
            self._check_cut(planned)
            self.parts_of.setdefault(planned.layer, []).append(planned)
        for layer in self.layers:
            if layer.index not in self.parts_of:
                self._fail(f"{layer.text()} is in no stage", expected="each layer in one")
        self._check_reads()
        for layer in self.layers:
            self._check_cover(layer)

    def _fail(self, what: str, *, expected: object = None, got: object = None) -> NoReturn:
        raise InputError(f"plan: {what}", expected=expected, got=got, hint=_HINT)

    def _text(self, planned: PlannedPart) -> str:
        layer = self.layers[planned.layer]
        processor = Processor(planned.processor).name.lower()
        return f"stage {planned.stage}, {processor}, {layer.text()}"

    def _check_place(self, number: int, planned: PlannedPart) -> None:
        """Stage, processor and layer."""
        if planned.processor not in tuple(Processor):
            self._fail(f"part {number}: processor", expected="0 or 1", got=planned.processor)
        if not 0 <= planned.layer < len(self.layers):
            count = len(self.layers)
            self._fail(
                f"part {number}: layer {planned.layer} does not exist", expected=f"< {count}"
            )
        where = self._text(planned)
        last_stage = self.plan.parts[number - 1].stage
        allowed = [last_stage, last_stage + 1] if number else [0]
        if planned.stage not in allowed:
            expected = " or ".join(map(str, allowed))
            self._fail(f"{where}: stages do not count up from 0 without gaps", expected=expected)
        for other in self.parts_of.get(planned.layer, []):
            if other.stage != planned.stage:
                self._fail(
                    f"{where}: the layer is in stage {other.stage}, too", expected="one stage"
                )
            if other.processor == planned.processor:
                self._fail(f"{where}: the processor has two parts of the layer", expected="one")

    def _check_cut(self, planned: PlannedPart) -> None:
        """The part is inside the output and cut where its layer can be."""
        layer, part, where = self.layers[planned.layer], planned.part, self._text(planned)
        rows = f"rows {part.row_begin}:{part.row_end}"
        channels = f"channels {part.channel_begin}:{part.channel_end}"
        if not 0 <= part.row_begin < part.row_end <= layer.height:
            self._fail(f"{where}: {rows} do not exist", expected=f"some of 0:{layer.height}")
        if not 0 <= part.channel_begin < part.channel_end <= layer.channels:
            self._fail(f"{where}: {channels} do not exist", expected=f"some of 0:{layer.channels}")
        if part.rows < layer.height and CUTS[layer.kind] == "none":
            self._fail(f"{where}: {rows}: this op cannot be cut between rows", expected="all rows")
        if part.channels == layer.channels:
            return
        if not layer.cuts_channels:
            self._fail(
                f"{where}: {channels}: this op cannot be cut between channels",
                expected="all channels",
            )
        for cut in (part.channel_begin, part.channel_end):
            if cut % CHANNEL_GRAIN and cut != layer.channels:
                expected = f"a multiple of {CHANNEL_GRAIN}, or {layer.channels}"
                self._fail(f"{where}: {channels}: a cut", expected=expected, got=cut)

    def _check_reads(self) -> None:
        """Each part reads what is complete, or what its processor wrote before in the stage."""
        for planned in self.plan.parts:
            layer, part = self.layers[planned.layer], planned.part
            window, own = layer.rows_under(part), (part.row_begin, part.row_end)
            same = (part.channel_begin, part.channel_end)
            reads_same = CHANNELS_READ[layer.kind] == "same"
            for tensor in layer.operands:
                every = (0, self.channels[tensor])
                self._check_read(planned, tensor, window, same if reads_same else every)
            for tensor in layer.step_tensors:
                rows = (0, 1) if self.heights[tensor] == 1 else own
                self._check_read(planned, tensor, rows, same)
            for tensor in layer.operands + layer.step_tensors:
                self.last_read[tensor] = planned.stage
            for tensor in layer.outputs:
                self.written[planned.processor, tensor] = part

    def _check_read(
        self, planned: PlannedPart, tensor: int, rows: tuple[int, int], channels: tuple[int, int]
    ) -> None:
        writer, height = self.writer.get(tensor), self.heights[tensor]
        if ROWS_READ[self.layers[planned.layer].kind] == "all":
            rows = (0, height)
        begin, end = max(rows[0], 0), min(rows[1], height)
        if writer is None or begin >= end:
            return
        stage = self.parts_of[writer.index][0].stage
        if stage < planned.stage:
            return
        mine = self.written.get((planned.processor, tensor))
        read = f"{self._text(planned)}: reads rows {begin}:{end} of '{self.names[tensor]}'"
        if mine is None:
            self._fail(
                f"{read}, which {writer.text()} writes in stage {stage}",
                expected="an earlier stage, or the same processor before it in its stage",
            )
        if not (mine.row_begin <= begin and end <= mine.row_end):
            got = f"{mine.row_begin}:{mine.row_end}"
            self._fail(f"{read}, of which its processor has other rows in the stage", got=got)
        if not (mine.channel_begin <= channels[0] and channels[1] <= mine.channel_end):
            self._fail(
                f"{read}, of which its processor has not all channels in the stage",
                expected=f"{channels[0]}:{channels[1]}",
                got=f"{mine.channel_begin}:{mine.channel_end}",
            )

    def _check_cover(self, layer: _Layer) -> None:
        """What others read later, or the network gives, is computed exactly once."""
        parts = self.parts_of[layer.index]
        is_output = not self.outputs.isdisjoint(layer.outputs)
        last_read = max(self.last_read.get(tensor, -1) for tensor in layer.outputs)
        if not is_output and last_read <= parts[0].stage:
            return
        where = f"{layer.text()}, which later stages or the network's outputs need"
        rectangles = [planned.part for planned in parts]
        if len(parts) == 2 and _overlap(*rectangles):
            self._fail(f"{where}: both processors compute a part of it twice", expected="once")
        area = sum(part.rows * part.channels for part in rectangles)
        if area != layer.height * layer.channels:
            got = " and ".join(_extent(part) for part in rectangles)
            whole = _extent(OutputPart(0, layer.height, 0, layer.channels))
            self._fail(f"{where}: nobody computes a part of it", expected=whole, got=got)


def _overlap(first: OutputPart, second: OutputPart) -> bool:
    return max(first.row_begin, second.row_begin) < min(first.row_end, second.row_end) and max(
        first.channel_begin, second.channel_begin
    ) < min(first.channel_end, second.channel_end)


def _extent(part: OutputPart) -> str:
    return (
        f"rows {part.row_begin}:{part.row_end} of channels {part.channel_begin}:{part.channel_end}"
    )
