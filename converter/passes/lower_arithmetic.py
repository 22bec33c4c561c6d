"""Batch and input normalisation and divisions become scale-and-bias steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import (
    BatchNorm,
    Dequantize,
    Divide,
    Elementwise,
    Epilogue,
    Graph,
    ScaleBias,
)
from phonebit.converter.passes.base import Pass, PassLog, refresh_types
from phonebit.converter.reference.epilogue import batch_norm_scale


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
            op = node.op
            if isinstance(op, BatchNorm):
                scale = batch_norm_scale(op)
                bias = op.beta.astype(np.float64) - op.mean.astype(np.float64) * scale
                step = ScaleBias(scale, bias.astype(np.float32))
            elif isinstance(op, Dequantize):
                step = ScaleBias(op.scale, op.offset)
            elif isinstance(op, Divide):
                reciprocal = (1 / op.divisor.astype(np.float64)).astype(np.float32)
                step = ScaleBias(reciprocal, np.zeros_like(reciprocal))
            else:
                continue
            graph.nodes[index] = replace(node, op=Elementwise(Epilogue([step])))
        refresh_types(graph)
