"""Elementwise work moves into the epilogue of the op that computes its operand."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue import Epilogue, TensorOp
from phonebit.converter.ops.with_epilogue import EpilogueOperator, epilogue_of
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    index_of,
    merged_sources,
    only_consumer,
    remove_node,
    replace_node,
    with_epilogue,
)
from phonebit.format.records import DataType


class FuseEpilogues(Pass):
    """Absorbs Elementwise nodes, so that no intermediate tensor goes through memory.

    Given::

        v = conv(x); n = v * s + t; y = n + shortcut; b = y >= 0

    Result::

        y, b = conv(x; steps: * s + t, + shortcut; y >= 0)

    Steps move only if nobody else reads the value before them. A comparison without steps moves
    even if the value stays (the op then has two outputs), one per op. The fused op runs where the
    Elementwise stood, when all its operands exist; of two operands of an addition, the one computed
    last absorbs it, which costs the minimum delay.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        place = 0  # what is in front of it cannot be fused, and no fusion makes that possible
        while place < len(graph.nodes):  # no value is added, so the types stay valid
            place += self._fused_at(graph, graph.nodes[place])

    def _fused_at(self, graph: Graph, node: Node) -> int:
        """Fuses a node if that is possible.

        Returns:
            How far on the next node to look at is: a fused op once more, where its last node was.
        """
        if not isinstance(node.op, Elementwise):
            return 1
        if self._is_comparison(node):
            target = self._comparing_producer(graph, node)
            if target is None:
                return 1
            self._attach(graph, target, node)
            return 0
        hosts = self._hosts(graph, node)
        if not hosts:
            return 1
        _, operand, host = max(hosts, key=lambda entry: entry[0])
        self._absorb(graph, host, node, operand)
        return -1

    @staticmethod
    def _is_comparison(node: Node) -> bool:
        epilogue = epilogue_of(node.op)
        return epilogue is not None and not epilogue.steps and node.value is None

    @staticmethod
    def _comparing_producer(graph: Graph, node: Node) -> Node | None:
        producer = graph.producer(node.inputs[0])
        fits = isinstance(producer.op, EpilogueOperator) and producer.bits is None
        is_float = graph.types[node.inputs[0]].dtype == DataType.F32
        return producer if fits and is_float else None

    @staticmethod
    def _attach(graph: Graph, producer: Node, node: Node) -> None:
        """Gives ``producer`` the bits of a bare comparison; drops its value if that was all."""
        epilogue, comparison = epilogue_of(producer.op), epilogue_of(node.op)
        assert epilogue is not None and comparison is not None and producer.value is not None
        remove_node(graph, node)
        needed = producer.value in graph.outputs or graph.consumers(producer.value)
        fused = replace(
            with_epilogue(producer, replace(epilogue, threshold=comparison.threshold)),
            value=producer.value if needed else None,
            bits=node.bits,
            sources=merged_sources(producer, node),
        )
        replace_node(graph, producer, fused)

    @staticmethod
    def _hosts(graph: Graph, node: Node) -> list[tuple[int, int, Node]]:
        """(position, operand number, producer) of every op that could take the node's steps."""
        hosts = []
        for operand in _entry_operands(graph, node):
            value = node.inputs[operand]
            producer = graph.producer(value)
            if (
                isinstance(producer.op, EpilogueOperator)
                and producer.bits is None
                and only_consumer(graph, value) is node
                and graph.types[value].dtype == DataType.F32
            ):
                hosts.append((index_of(graph, producer), operand, producer))
        return hosts

    @staticmethod
    def _absorb(graph: Graph, host: Node, node: Node, operand: int) -> None:
        """Appends the node's steps to the host's, at the node's place in the order."""
        before, own = epilogue_of(host.op), epilogue_of(node.op)
        assert before is not None and own is not None
        inputs = list(host.inputs)
        steps = list(before.steps)
        for step in own.steps:
            if isinstance(step, TensorOp):
                # Entering through the second operand of a + b swaps the two.
                other = 0 if step.operand == operand else step.operand
                steps.append(replace(step, operand=len(inputs)))
                inputs.append(node.inputs[other])
            else:
                steps.append(step)
        fused = replace(
            with_epilogue(host, Epilogue(steps, own.threshold)),
            inputs=inputs,
            value=node.value,
            bits=node.bits,
            sources=merged_sources(host, node),
        )
        replace_node(graph, node, fused)
        remove_node(graph, host)


def _entry_operands(graph: Graph, node: Node) -> list[int]:
    """Operands whose producer can take over: the main one, and b of a first step a + b or a * b.

    The latter needs the output's full shape, and the main one, which becomes the step's operand,
    must be F32. An operand that other steps read again has to stay in memory.
    """
    epilogue = epilogue_of(node.op)
    assert epilogue is not None
    read = [s.operand for s in epilogue.steps if isinstance(s, TensorOp)]
    entries = [] if 0 in read else [0]
    first = epilogue.steps[0] if epilogue.steps else None
    if isinstance(first, TensorOp) and read.count(first.operand) == 1:
        main, other = (graph.types[node.inputs[index]] for index in (0, first.operand))
        if other.shape == main.shape and main.dtype == DataType.F32:
            entries.append(first.operand)
    return entries
