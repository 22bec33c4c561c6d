"""Padding that the file's convolutions do not know becomes a Pad of its own."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Pad
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    insert_before,
    refresh_types,
    replace_node,
)


class ExplicitPads(Pass):
    """Takes non-zero or over-wide padding out of float convolutions.

    Given::

        y = conv(x, pads, pad_value=1)

    Result::

        p = pad(x, pads, 1); y = conv(p)
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Conv2D):
                continue
            pads = op.window.pads
            if not any(pads):
                if op.pad_value != 0:
                    replace_node(graph, node, replace(node, op=replace(op, pad_value=0.0)))
                continue
            if op.pad_value == 0 and op.window.padding_fits:
                continue
            value = fresh_value(graph, f"{node.inputs[0]}/padded")
            padding = Node(f"{node.name}/pad", Pad(pads, op.pad_value), [node.inputs[0]], value)
            window = replace(op.window, pads=(0, 0, 0, 0))
            bare = replace(op, window=window, pad_value=0.0)
            insert_before(graph, node, padding)
            replace_node(graph, node, replace(node, op=bare, inputs=[value, *node.inputs[1:]]))
        refresh_types(graph)
