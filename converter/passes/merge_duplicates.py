"""One copy of what several layers compute alike."""

from __future__ import annotations

from dataclasses import astuple

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Pad, Reshape, Sign
from phonebit.converter.passes.base import Pass, PassLog, remove_node, rename_uses


class MergeDuplicates(Pass):
    """Keeps the first of several equal Signs, Pads or Reshapes of one value.

    Every quantized layer of a framework brings its own input quantizer, so a value that feeds two
    of them is signed twice.

    Given::

        a = sign(x); p = conv(a)
        b = sign(x); q = conv(b)

    Result::

        a = sign(x); p = conv(a); q = conv(a)
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        first: dict[tuple[object, ...], Node] = {}
        for node in list(graph.nodes):
            key = self._key(node)
            if key is None:
                continue
            kept = first.setdefault(key, node)
            value = node.outputs[0]
            if kept is node or value in graph.outputs:
                continue
            rename_uses(graph, value, kept.outputs[0])
            remove_node(graph, node)

    @staticmethod
    def _key(node: Node) -> tuple[object, ...] | None:
        op = node.op
        if not isinstance(op, Sign | Pad | Reshape):
            return None
        return (type(op), node.inputs[0], *astuple(op))
