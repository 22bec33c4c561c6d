"""Bits that meet a float operation are unpacked by an op of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import (
    AveragePool2D,
    Concat,
    Conv2D,
    Elementwise,
    Epilogue,
    Graph,
    MaxPool2D,
    Node,
    Pad,
    Reshape,
    SelectChannels,
    Softmax,
)
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
            if isinstance(node.op, Reshape | Pad) and self._is_bit(graph, node.outputs[0]):
                node = self._sandwich(graph, node)
            for index in self._float_operands(graph, node):
                if graph.types[node.inputs[index]].dtype in (DataType.BIT, DataType.U8):
                    node.inputs[index] = self._as_float(graph, node, node.inputs[index])
        refresh_types(graph)

    @staticmethod
    def _is_bit(graph: Graph, value: str) -> bool:
        return graph.types[value].dtype == DataType.BIT

    def _float_operands(self, graph: Graph, node: Node) -> list[int]:
        """Numbers of the operands that the file wants as F32."""
        op = node.op
        if isinstance(op, Conv2D):
            return [0] if self._is_bit(graph, node.inputs[0]) else []
        if isinstance(op, MaxPool2D):
            return [] if self._is_bit(graph, node.inputs[0]) else [0]
        if isinstance(op, AveragePool2D | Pad | Reshape | SelectChannels | Softmax):
            return list(range(len(node.inputs)))
        if isinstance(op, Concat):
            every_bit = all(self._is_bit(graph, value) for value in node.inputs)
            return [] if every_bit else list(range(len(node.inputs)))
        return list(range(1, len(node.inputs)))  # what epilogue steps refer to

    @staticmethod
    def _as_float(graph: Graph, reader: Node, value: str) -> str:
        """The value's float copy, which all readers share."""
        for node in graph.nodes:
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
