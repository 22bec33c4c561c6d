"""Padding that is wider than the kernel leaves convolutions of quantized values."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import Conv2D, Pad, PlaneSum
from phonebit.converter.passes.base import Pass, PassLog, fresh_value, refresh_types, replace_node
from phonebit.format.records import DataType


class NarrowPads(Pass):
    """Leaves out windows that lie in the padding alone: their sum is 0.

    Given::

        y = conv(b, 1x1, pads=(1, 1, 1, 1))

    Result::

        v = conv(b, 1x1); y = pad(v, (1, 1, 1, 1), 0)

    A binary convolution has narrower padding than its kernel.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Conv2D) or op.window.padding_fits or op.pad_value != 0:
                continue
            if op.bias is not None or not is_quantized(graph, node.inputs[0]):
                continue
            narrow, outer = _narrowed(op.window, *graph.types[node.inputs[0]].shape[:2])
            if narrow.padding_fits and min(narrow.pads) >= 0:
                value = fresh_value(graph, f"{node.value}/narrow")
                inner = replace(node, op=replace(op, window=narrow), value=value)
                padding = replace(node, name=f"{node.name}/pad", op=Pad(outer), inputs=[value])
                replace_node(graph, node, inner, padding)
        refresh_types(graph)


def is_quantized(graph: Graph, value: str) -> bool:
    """Whether a convolution of ``value`` may become binary."""
    is_bit = graph.types[value].dtype == DataType.BIT
    return is_bit or isinstance(graph.producer(value).op, PlaneSum)


def _narrowed(window: Window, height: int, width: int) -> tuple[Window, tuple[int, int, int, int]]:
    """The window without outputs of padding alone, and how many there are on each side."""
    sizes, spans = window.output_size(height, width), window.spans
    before, after, outer = [], [], []
    for axis, size in enumerate((height, width)):
        stride, pad = window.strides[axis], window.pads[axis]
        # Output i reads from i * stride - pad on; it sees the map if that is within these bounds.
        first = max(0, -(-(pad - spans[axis] + 1) // stride))
        last = min(sizes[axis] - 1, (size - 1 + pad) // stride)
        begin, end = first * stride - pad, last * stride - pad + spans[axis]
        before.append(-begin)
        after.append(max(0, end - size))
        outer.append((first, sizes[axis] - 1 - last))
    pads = (before[0], before[1], after[0], after[1])
    return replace(window, pads=pads), (outer[0][0], outer[1][0], outer[0][1], outer[1][1])
