"""Explicit padding becomes the padding of the convolution after it."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Pad
from phonebit.converter.passes.base import Pass, PassLog, merged_sources, producer_of
from phonebit.converter.passes.narrow_pads import is_quantized


class MergePads(Pass):
    """Folds a Pad into each convolution that reads it.

    Given::

        p = pad(x, (1, 1, 1, 1), value=v); y = conv(p, pads=0)

    Result::

        y = conv(x, pads=(1, 1, 1, 1), pad_value=v)

    Both pads add up if they pad with the same value. Padding as wide as the kernel stays explicit,
    because the file format does not know it, unless NarrowPads takes it out again. Pooling is left
    alone: it ignores its own padding.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for index, node in enumerate(graph.nodes):
            merged = self._merged(graph, node)
            while merged is not None:  # several Pads may follow each other
                graph.nodes[index] = merged
                merged = self._merged(graph, merged)

    @staticmethod
    def _merged(graph: Graph, node: Node) -> Node | None:
        op = node.op
        if not isinstance(op, Conv2D):
            return None
        found = producer_of(graph, node.inputs[0], Pad)
        if found is None:
            return None
        pad_node, pad = found
        inner = op.window.pads
        if any(inner) and op.pad_value != pad.value:
            return None
        top, left, bottom, right = (a + b for a, b in zip(inner, pad.pads, strict=True))
        window = replace(op.window, pads=(top, left, bottom, right))
        is_narrowed = pad.value == 0 and is_quantized(graph, pad_node.inputs[0])
        if not window.padding_fits and not is_narrowed:
            return None
        return replace(
            node,
            op=replace(op, window=window, pad_value=pad.value),
            inputs=[pad_node.inputs[0], *node.inputs[1:]],
            sources=merged_sources(pad_node, node),
        )
