"""Convolution biases become steps of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Elementwise
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, fresh_value, refresh_types, replace_node


class SplitBias(Pass):
    """Takes the bias out of every convolution, so that all that follows a sum is one kind of step.

    Given::

        y = conv(x, w, bias)

    Result::

        y/sum = conv(x, w)
        y = y/sum * 1 + bias          # * 1 is exact: the sum is rounded once
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Conv2D) or op.bias is None or node.value is None:
                continue
            raw = fresh_value(graph, f"{node.value}/sum")
            step = ScaleBias(np.ones_like(op.bias), op.bias)
            bare = replace(node, op=replace(op, bias=None), value=raw)
            add = Node(f"{node.name}/bias", Elementwise(Epilogue([step])), [raw], value=node.value)
            replace_node(graph, node, bare, add)
        refresh_types(graph)
