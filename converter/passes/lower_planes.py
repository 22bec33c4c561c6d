"""Quantized values that are needed as real numbers are put together from their planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import FloatArray, Graph, Node
from phonebit.converter.ops import Elementwise, PlaneSum
from phonebit.converter.ops.epilogue import AddTensor, Epilogue, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, fresh_value, refresh_types, replace_node


class LowerPlanes(Pass):
    """Replaces every PlaneSum that is still read by element-wise work.

    Given::

        q = offset + scale0 * b0 + scale1 * b1

    Result::

        t = b0 * scale0 + offset; u = b1 * scale1 + 0; q = u + t

    Of binary planes, whose level is there, the result is q = level * 2 scale0 + lowest.

    Each product and sum is rounded, so q may differ by float rounding.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, PlaneSum):
                level = _level_of(graph, node)
                if level is None:
                    self._lower(graph, node, node.op)
                else:
                    low = node.op.offset - node.op.scales.sum(axis=0, dtype=np.float64)
                    step = 2 * node.op.scales[0]
                    scaled = _scaled(node, level, step, low.astype(np.float32), node.value)
                    replace_node(graph, node, scaled)
        refresh_types(graph)

    @staticmethod
    def _lower(graph: Graph, node: Node, op: PlaneSum) -> None:
        added: list[Node] = []
        total = ""
        last = len(node.inputs) - 1
        for index, bits in enumerate(node.inputs):
            name = node.name if index == last else f"{node.name}/level{index}"
            term = fresh_value(graph, f"{node.value}/term{index}")
            value = node.value if last == 0 else term
            bias = (op.offset if index == 0 else np.zeros_like(op.offset)).astype(np.float32)
            added.append(_scaled(replace(node, name=name), bits, op.scales[index], bias, value))
            if index:
                value = node.value if index == last else fresh_value(graph, f"{term}/sum")
                step = Epilogue([AddTensor(1)])
                added.append(Node(f"{name}/add", Elementwise(step), [term, total], value=value))
            total = value or ""
        replace_node(graph, node, *added)


def _level_of(graph: Graph, node: Node) -> str | None:
    """The number of which a sum has all the bits."""
    above = graph.producer(node.inputs[0])
    return above.inputs[0] if above.planes == node.inputs else None


def _scaled(node: Node, bits: str, scale: FloatArray, bias: FloatArray, value: str | None) -> Node:
    op = Elementwise(Epilogue([ScaleBias(scale, bias)]))
    return replace(node, op=op, inputs=[bits], value=value)
