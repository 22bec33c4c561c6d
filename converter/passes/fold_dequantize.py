"""Input normalisation disappears into integer arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Dequantize, Elementwise
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    producer_of,
    refresh_types,
    replace_node,
)
from phonebit.converter.passes.two_valued import all_ones, split_scale


class FoldDequantize(Pass):
    """Lets a first layer with two-valued weights read the image's bytes.

    Given::

        x = dequantize(u8, (mul * u8 + add) / divisor); y = conv(x, alpha * {-1, +1}, pad 0)

    Result::

        y/sum = conv(u8, {-1, +1}, input_mul=mul, input_add=add)       # exact integers
        y = y/sum * (alpha / divisor) + 0

    because sum(alpha * s * (mul * u + add) / divisor) = alpha / divisor * sum(s * (mul * u + add)).
    Padding stays exact: a padded tap is the real number 0, which is the integer 0 of the new sum
    (and not the byte 0). Other readers keep the Dequantize.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Conv2D):
                self._fold(graph, node, node.op)
        refresh_types(graph)

    @staticmethod
    def _fold(graph: Graph, node: Node, op: Conv2D) -> None:
        found = producer_of(graph, node.inputs[0], Dequantize)
        if found is None or node.value is None:
            return
        source, dequantize = found
        factors = split_scale(op.weights)
        pads_zero = op.pad_value == 0 or not any(op.window.pads)
        foldable = pads_zero and op.window.padding_fits
        if dequantize.rational is None or factors is None or not foldable:
            return
        mul, add, divisor = dequantize.rational
        alpha, signs = factors
        scale = (alpha.astype(np.float64) / divisor).astype(np.float32)
        integer = replace(op, weights=signs, pad_value=0.0, input_mul=mul, input_add=add)
        if all_ones(scale):
            replace_node(graph, node, replace(node, op=integer, inputs=[source.inputs[0]]))
            return
        raw = fresh_value(graph, f"{node.value}/sum")
        step = ScaleBias(scale, np.zeros_like(scale))
        replace_node(
            graph,
            node,
            replace(node, op=integer, inputs=[source.inputs[0]], value=raw),
            Node(f"{node.name}/scale", Elementwise(Epilogue([step])), [raw], value=node.value),
        )
