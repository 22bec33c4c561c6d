"""Convolutions of bits with two-valued weights become binary convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.engine_rules import padding_fits
from phonebit.converter.ir import (
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Conv2D,
    Elementwise,
    Epilogue,
    FloatArray,
    Graph,
    Node,
    Operator,
    ScaleBias,
)
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    refresh_types,
    replace_node,
)
from phonebit.converter.passes.two_valued import all_ones, split_scale
from phonebit.format.records import DataType


class RecogniseBinary(Pass):
    """Factors two-valued weights into signs and a scale.

    Given::

        y = conv(bits, alpha[o] * {-1, +1}, pad_value in {-1, 0, 1})
        z = conv(floats, alpha[o] * {-1, +1})

    Result::

        y/sum = binary_conv(bits, {-1, +1}); y = y/sum * alpha + 0     # the scale only if needed
        z/sum = conv(floats, {-1, +1}); z = z/sum * alpha + 0          # weights of one bit each

    A convolution with one filter per channel becomes a BinaryDepthwiseConv2D. What stays float is
    noted with the reason.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Conv2D) and node.value is not None:
                self._recognise(graph, node, node.op, log)
        refresh_types(graph)

    def _recognise(self, graph: Graph, node: Node, op: Conv2D, log: PassLog) -> None:
        kind = graph.types[node.inputs[0]].dtype
        if kind == DataType.U8:
            log.not_binary[node.name] = "binary weights on an 8-bit input: exact integers"
            return
        factors = split_scale(op.weights)
        reason = self._obstacle(op, kind, factors)
        if reason is not None:
            log.not_binary[node.name] = reason
        if factors is None or (reason is not None and kind == DataType.BIT):
            return
        # One tap is always "two-valued"; splitting it would only cost a step.
        if kind == DataType.F32 and op.weights[0].size == 1:
            return
        alpha, signs = factors
        binary: Operator = replace(op, weights=signs)
        if kind == DataType.BIT:
            binary = self._binary(op, signs, graph.types[node.inputs[0]].shape[2])
        elif all_ones(alpha):
            return
        self._replace(graph, node, binary, alpha)

    @staticmethod
    def _obstacle(
        op: Conv2D, kind: DataType, factors: tuple[FloatArray, FloatArray] | None
    ) -> str | None:
        if factors is None:
            if kind == DataType.BIT:
                return "weights are not a scale per filter times -1/+1"
            return "full precision: neither input nor weights are two-valued"
        if kind != DataType.BIT:
            return "binary weights on a real-valued input"
        if any(op.window.pads) and op.pad_value not in (-1.0, 0.0, 1.0):
            return f"pads its bits with {op.pad_value}, which is none of -1, 0, 1"
        if not padding_fits(op.window):
            return "padding is as wide as the kernel"
        return None

    @staticmethod
    def _binary(op: Conv2D, signs: FloatArray, channels: int) -> Operator:
        weights = signs.astype(np.int8)
        pad_value = int(op.pad_value) if any(op.window.pads) else 0
        if op.groups == channels == weights.shape[0]:
            return BinaryDepthwiseConv2D(weights, op.window, pad_value)
        return BinaryConv2D(weights, op.window, op.groups, pad_value)

    @staticmethod
    def _replace(graph: Graph, node: Node, binary: Operator, alpha: FloatArray) -> None:
        if all_ones(alpha):
            replace_node(graph, node, replace(node, op=binary))
            return
        raw = fresh_value(graph, f"{node.value}/sum")
        step = ScaleBias(alpha, np.zeros_like(alpha))
        scale = Node(f"{node.name}/scale", Elementwise(Epilogue([step])), [raw], value=node.value)
        replace_node(graph, node, replace(node, op=binary, value=raw), scale)
