"""Removal of nodes that change nothing."""

from __future__ import annotations

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Elementwise, Pad, Reshape, Sign
from phonebit.converter.ops.epilogue import Clamp
from phonebit.converter.passes.base import Pass, PassLog, remove_node, rename_uses
from phonebit.format.records import DataType


class RemoveIdentities(Pass):
    """Drops what passes its input through: dropout, linear activations, reshapes to the same shape.

    Given::

        a = elementwise(x, steps=[])       # Dropout at inference
        b = reshape(a, shape of a)
        c = pad(b, 0 pixels)
        d = reshape(reshape(c, s), t)
        e = sign(sign(d))

    Result::

        d = reshape(x, t)
        e = sign(d)
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            self._skip_inner_reshape(graph, node)
            if not node.inputs or not self._is_identity(graph, node):
                continue
            value, source = node.outputs[0], node.inputs[0]
            if value in graph.outputs:
                continue  # an output keeps its own name
            rename_uses(graph, value, source)
            remove_node(graph, node)

    @staticmethod
    def _is_identity(graph: Graph, node: Node) -> bool:
        kind = graph.types[node.inputs[0]]
        op = node.op
        if isinstance(op, Elementwise):
            passes = all(
                isinstance(step, Clamp) and step.low == -float("inf") and step.high == float("inf")
                for step in op.epilogue.steps
            )
            return passes and node.bits is None and kind.dtype == DataType.F32
        if isinstance(op, Reshape):
            return op.shape == kind.shape
        if isinstance(op, Pad):
            return not any(op.pads)
        return isinstance(op, Sign) and kind.dtype == DataType.BIT and -1 < op.threshold <= 1

    @staticmethod
    def _skip_inner_reshape(graph: Graph, node: Node) -> None:
        if not isinstance(node.op, Reshape):
            return
        inner = graph.producer(node.inputs[0])
        if isinstance(inner.op, Reshape):
            graph.rewire(node, [inner.inputs[0]])
