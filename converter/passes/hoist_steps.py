"""Element-wise work after a concatenation moves to what is concatenated."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.infer import infer_added
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Concat, Elementwise
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    index_of,
    only_consumer,
    remove_node,
    replace_node,
)
from phonebit.format.records import DataType


class HoistSteps(Pass):
    """Lets the operands of a Concat do the per-channel steps and comparisons that follow it.

    Given::

        k = concat(conv(x), conv(y)); v = k * scale + bias; b = v >= t

    Result::

        v = concat(conv(x) * scale[:c] + bias[:c], conv(y) * scale[c:] + bias[c:])
        b = concat(v's first operand >= t[:c], v's second operand >= t[c:])

    FuseEpilogues then puts them into the convolutions (ReActNet doubles its channels this way), and
    the concatenated values are not read and written once more. Only where every operand is computed
    by an op that can take the steps; a concatenation that somebody else reads stays for him, and
    then only bare comparisons move.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Elementwise) and len(node.inputs) == 1:
                self._hoist(graph, node, node.op)

    @staticmethod
    def _hoist(graph: Graph, node: Node, op: Elementwise) -> None:
        concat = graph.producer(node.inputs[0])
        channels = graph.types[node.inputs[0]].shape[2]
        if not isinstance(concat.op, Concat) or not op.is_per_channel(channels):
            return
        if op.epilogue.steps and only_consumer(graph, node.inputs[0]) is not node:
            return
        if not all(_can_take_steps(graph, value, concat) for value in concat.inputs):
            return
        parts: list[Node] = []
        begin = 0
        for number, value in enumerate(concat.inputs):
            end = begin + graph.types[value].shape[2]
            name = fresh_value(graph, f"{node.outputs[0]}/{number}")
            part = replace(
                node,
                name=f"{node.name}/{number}",
                op=op.sliced(slice(begin, end)),
                inputs=[value],
                value=name if node.value is not None else None,
                bits=name if node.bits is not None else None,
            )
            parts.append(part)
            begin = end
        joined = replace(
            concat, inputs=[part.outputs[0] for part in parts], value=node.outputs[0], bits=None
        )
        if op.epilogue.steps:
            replace_node(graph, node, *parts, joined)
            remove_node(graph, concat)
        else:
            joined.name = f"{concat.name}/bits"
            position = index_of(graph, concat)
            remove_node(graph, node)
            graph.nodes[position:position] = [*parts, joined]
        infer_added(graph, [*parts, joined])


def _can_take_steps(graph: Graph, value: str, concat: Node) -> bool:
    producer = graph.producer(value)
    return (
        isinstance(producer.op, EpilogueOperator)
        and producer.bits is None
        and graph.types[value].dtype == DataType.F32
        and value not in graph.outputs
        and all(reader is concat or _is_comparison(reader) for reader in graph.consumers(value))
    )


def _is_comparison(node: Node) -> bool:
    return isinstance(node.op, Elementwise) and node.value is None
