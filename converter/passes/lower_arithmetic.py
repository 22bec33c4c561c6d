"""Batch and input normalisation and divisions become scale-and-bias steps."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.base import Affine
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, refresh_types


class LowerArithmetic(Pass):
    """Replaces what is left of BatchNorm, Dequantize and Divide by Elementwise.

    Given::

        n = (v - mean) * (gamma / sqrt(variance + epsilon)) + beta
        x = u8 * scale + offset
        q = v / d

    Result::

        n = v * s + b        # s = gamma / sqrt(variance + epsilon), b = beta - mean * s
        x = u8 * scale + offset
        q = v * (1 / d) + 0

    The arithmetic is arranged anew, so n and q may differ by float rounding; b is computed in
    float64 and rounded once. Thresholds are found before this pass and are not affected.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for index, node in enumerate(graph.nodes):
            if isinstance(node.op, Affine):
                step = ScaleBias(*node.op.scale_bias())
                graph.nodes[index] = replace(node, op=Elementwise(Epilogue([step])))
        refresh_types(graph)
