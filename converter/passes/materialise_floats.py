"""Bits that meet a float operation are unpacked by an op of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.base import BIT, U8, EngineOperator
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    insert_before,
    refresh_types,
    replace_node,
)
from phonebit.format.records import DataType


class MaterialiseFloats(Pass):
    """Inserts Elementwise conversions where an op of the file cannot read bits.

    Given::

        y = average_pool(bits); z = x + bits; r = reshape(bits)

    Result::

        f = elementwise(bits); y = average_pool(f); z = x + f
        g = reshape(f); r = elementwise(g): g >= 0
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, EngineOperator):
                continue
            if node.value is not None and graph.types[node.value].dtype == BIT not in op.reads:
                node = self._sandwich(graph, node)
            for index in self._float_operands(graph, node, op.reads):
                if graph.types[node.inputs[index]].dtype in (BIT, U8):
                    inputs = list(node.inputs)
                    inputs[index] = self._as_float(graph, node, inputs[index])
                    graph.rewire(node, inputs)
        refresh_types(graph)

    @staticmethod
    def _float_operands(graph: Graph, node: Node, reads: tuple[DataType, ...]) -> list[int]:
        """Numbers of the operands that the file wants as F32: what steps refer to always is."""
        kinds = {graph.types[name].dtype for name in node.main_inputs}
        is_readable = len(kinds) == 1 and kinds <= set(reads)
        return list(range(len(node.main_inputs) if is_readable else 0, len(node.inputs)))

    @staticmethod
    def _as_float(graph: Graph, reader: Node, value: str) -> str:
        """The value's float copy, which all readers share."""
        for node in graph.consumers(value):
            unpacks = isinstance(node.op, Elementwise) and not node.op.epilogue.steps
            if unpacks and node.inputs == [value] and node.bits is None and node.value is not None:
                return node.value
        unpacked = fresh_value(graph, f"{value}/float")
        insert_before(graph, reader, Node(unpacked, Elementwise(), [value], value=unpacked))
        return unpacked

    @staticmethod
    def _sandwich(graph: Graph, node: Node) -> Node:
        """Rearranges floats and takes their sign: -1 and +1 survive the round trip exactly."""
        bits = node.outputs[0]
        value = fresh_value(graph, f"{bits}/float")
        inner = replace(node, value=value)
        zeros = np.zeros(graph.types[bits].shape[2], np.float32)
        sign = Node(f"{node.name}/bits", Elementwise(Epilogue([], zeros)), [value], bits=bits)
        replace_node(graph, node, inner, sign)
        return inner
