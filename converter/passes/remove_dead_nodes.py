"""Removal of what no output depends on."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Input
from phonebit.converter.ops.with_epilogue import epilogue_of
from phonebit.converter.passes.base import Pass, PassLog, with_epilogue


class RemoveDeadNodes(Pass):
    """Drops nodes that no output depends on, and main values that nobody reads.

    Given::

        a = conv(x); b = sign(a); c = pool(x)          # c is neither read nor returned
        v, b = conv(x)                                 # both outputs computed, v never read

    Result::

        a = conv(x); b = sign(a)
        b = conv(x)
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        live = set(graph.outputs)
        kept = []
        for node in reversed(graph.nodes):
            if isinstance(node.op, Input):  # the network's signature does not shrink
                kept.append(node)
                continue
            if live.isdisjoint(node.outputs):
                continue
            live.update(node.inputs)
            if node.bits is not None and node.bits not in live:
                node = _without_bits(node)
            elif node.bits is not None and node.value not in live:
                node = replace(node, value=None)
            kept.append(node)
        graph.nodes = kept[::-1]


def _without_bits(node: Node) -> Node:
    epilogue = epilogue_of(node.op)
    assert epilogue is not None
    return with_epilogue(replace(node, bits=None), replace(epilogue, threshold=None))
