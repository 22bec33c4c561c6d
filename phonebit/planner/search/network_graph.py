"""A network as the planner sees it: layers, what they read and write, who reads what last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from phonebit.format.contents import FileContents
from phonebit.format.records import DataType
from phonebit.planner.plan.execution_plan import OutputPart, Shape
from phonebit.planner.plan.operators import ROWS_READ
from phonebit.planner.predict.layer_shape import TYPE_BITS, LayerShape


def extend(parts: dict[int, OutputPart], key: int, part: OutputPart) -> None:
    """Extends a part, so that it spans more; no rows change nothing."""
    if part.rows > 0:
        has = parts.get(key, part)
        begins = min(has.row_begin, part.row_begin), min(has.channel_begin, part.channel_begin)
        ends = max(has.row_end, part.row_end), max(has.channel_end, part.channel_end)
        parts[key] = OutputPart(begins[0], ends[0], begins[1], ends[1])


class GraphTensor(NamedTuple):
    """An activation tensor."""

    height: int
    width: int
    channels: int
    element_bits: int

    @property
    def whole(self) -> OutputPart:
        """All of it."""
        return OutputPart(0, self.height, 0, self.channels)

    def part_bytes(self, part: OutputPart) -> int:
        """Bytes of a part; channels of packed bits are cut between bytes."""
        return part.rows * self.width * ((part.channels * self.element_bits + 7) // 8)


@dataclass(frozen=True)
class GraphLayer:
    """An op of the file, with the index that ``Network.layers`` gives it.

    Args:
        operands: Tensors that it reads through its window.
        step_tensors: Tensors that its steps add or multiply, pixel by pixel.
        outputs: Tensors that it writes: its value, then its bits.
    """

    index: int
    name: str
    geometry: LayerShape
    operands: tuple[int, ...]
    step_tensors: tuple[int, ...]
    outputs: tuple[int, ...]

    @cached_property
    def shape(self) -> Shape:
        """Of its outputs."""
        return self.geometry.out_h, self.geometry.out_w, self.geometry.out_c

    @cached_property
    def reads(self) -> frozenset[int]:
        """All tensors that it reads."""
        return frozenset(self.operands + self.step_tensors)


@dataclass(frozen=True)
class NetworkGraph:
    """All of a network, in the file's order, in which every tensor is written before it is read."""

    layers: tuple[GraphLayer, ...]
    tensors: tuple[GraphTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, contents: FileContents) -> NetworkGraph:
        """The graph of a file."""
        layers = (
            GraphLayer(
                index,
                contents.name(int(op["name_offset"])),
                LayerShape.of(contents, index),
                contents.operands_of(op),
                contents.step_tensors_of(op),
                contents.outputs_of(op),
            )
            for index, op in enumerate(contents.ops)
        )
        fields = ["height", "width", "channels", "dtype"]
        tensors = (
            GraphTensor(height, width, channels, TYPE_BITS[DataType(dtype)])
            for height, width, channels, dtype in contents.tensors[fields].tolist()
        )
        return cls(
            tuple(layers),
            tuple(tensors),
            tuple(int(index) for index in contents.inputs),
            tuple(int(index) for index in contents.outputs),
        )

    @cached_property
    def writer(self) -> dict[int, int]:
        """The layer that writes a tensor; inputs have none."""
        return {tensor: layer.index for layer in self.layers for tensor in layer.outputs}

    @cached_property
    def last_reader(self) -> dict[int, int]:
        """The last layer that reads a tensor; one after the last layer for what goes out."""
        last = {tensor: layer.index for layer in self.layers for tensor in layer.reads}
        return last | dict.fromkeys(self.outputs, len(self.layers))

    def parts_read(self, layer: GraphLayer, part: OutputPart) -> Iterator[tuple[int, OutputPart]]:
        """What of which tensors an op reads for a part of its output.

        Row r of the output lies over rows ``r * stride - pad_top .. + (kernel - 1) * dilation``;
        those beyond the map's edges are padding. A (1, 1, C) tensor of a step gives its one row.

        Yields:
            Tensor and what is read of it: no rows where a part sees only padding.

        Source: CoDL, eq. 1, solved for the input.
        """
        reads, of = ROWS_READ[layer.geometry.kind], layer.geometry
        first, last = part.row_begin, part.row_end - 1
        if reads == "window":
            first *= of.stride_h
            last = last * of.stride_h + (of.kernel_h - 1) * of.dilation_h
        if reads in ("window", "padded"):
            first, last = first - of.pad_top, last - of.pad_top
        for tensor in layer.operands:
            height, _, channels, _ = self.tensors[tensor]
            rows, of_pixel = (0, height), (0, channels)
            if reads != "all":
                rows = min(max(first, 0), height), min(max(last + 1, 0), height)
            if of.reads_same_channels:
                of_pixel = part[2:]
            yield tensor, OutputPart(*rows, *of_pixel)
        for tensor in layer.step_tensors:
            has_one = self.tensors[tensor].height == 1
            yield tensor, OutputPart(0, 1, *part[2:]) if has_one else part
