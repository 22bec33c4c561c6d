"""Neighbouring scale-and-bias steps become one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import Graph
from phonebit.converter.ops.epilogue import EpilogueOp, ScaleBias
from phonebit.converter.ops.with_epilogue import epilogue_of
from phonebit.converter.passes.base import Pass, PassLog, with_epilogue


class MergeScaleBias(Pass):
    """Combines consecutive ScaleBias steps and drops those that change nothing.

    Given::

        v * alpha + 0; v * s + b; v * 1 + 0

    Result::

        v * (alpha * s) + b

    Products and sums of the constants are taken in float64 and rounded once; values may differ from
    the unmerged ones by float rounding. Integer thresholds come from the unmerged chain and have no
    steps left to merge.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for index, node in enumerate(graph.nodes):
            epilogue = epilogue_of(node.op)
            if epilogue is None or not epilogue.steps:
                continue
            steps = self._merged(epilogue.steps)
            if len(steps) != len(epilogue.steps):
                graph.nodes[index] = with_epilogue(node, replace(epilogue, steps=steps))

    @staticmethod
    def _merged(steps: list[EpilogueOp]) -> list[EpilogueOp]:
        merged: list[EpilogueOp] = []
        for step in steps:
            last = merged[-1] if merged else None
            if isinstance(step, ScaleBias) and isinstance(last, ScaleBias):
                scale = last.scale.astype(np.float64) * step.scale
                bias = last.bias.astype(np.float64) * step.scale + step.bias
                merged[-1] = step = ScaleBias(scale.astype(np.float32), bias.astype(np.float32))
            else:
                merged.append(step)
            if isinstance(step, ScaleBias) and np.all(step.scale == 1) and np.all(step.bias == 0):
                merged.pop()
        return merged
