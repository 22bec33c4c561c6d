"""Batch normalisation and input normalisation become scale-and-bias steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import BatchNorm, Dequantize, Elementwise, Epilogue, Graph, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, refresh_types
from phonebit.converter.reference.epilogue import batch_norm_scale


class LowerArithmetic(Pass):
    """Replaces what is left of BatchNorm and Dequantize, whose floats are needed, by Elementwise.

    Given::

        n = (v - mean) * (gamma / sqrt(variance + epsilon)) + beta
        x = u8 * scale + offset

    Result::

        n = v * s + b        # s = gamma / sqrt(variance + epsilon), b = beta - mean * s
        x = u8 * scale + offset

    The sum is arranged anew, so n may differ by float rounding; b is computed in float64 and
    rounded once. Thresholds are found before this pass and are not affected.
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
            else:
                continue
            graph.nodes[index] = replace(node, op=Elementwise(Epilogue([step])))
        refresh_types(graph)
