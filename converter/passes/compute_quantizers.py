"""Quantizers that no binary convolution reads become arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Elementwise, Quantize, Sign
from phonebit.converter.ops.epilogue import Count, Epilogue, EpilogueOp, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, refresh_types, replace_node
from phonebit.converter.passes.planes import MAX_PLANES
from phonebit.converter.passes.two_valued import factor_weights
from phonebit.converter.passes.uniform_steps import TIE, even_step, uniform_steps

MIN_THRESHOLDS: Final = 3
"""Fewer planes cost no more than the arithmetic."""
MANY_THRESHOLDS: Final = 7
"""From here on planes cost so much more that a level may be decided by rounding, as in training."""


class ComputeQuantizers(Pass):
    """Replaces quantizers of evenly spaced levels whose planes nothing would read as bits.

    Given::

        q = quantize(v; thresholds, values k * step); y = conv(q, float weights)

    Result::

        q = clamp(round(scale * v + bias)) * step; y = conv(q, float weights)

    Of few levels, the level is the same for every float32; of more, it may be the next one where v
    is a threshold up to rounding. The value may differ by one rounding. Thresholds of each
    channel's own are counted, where they are more than planes express.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Quantize) or op.count < MIN_THRESHOLDS:
                continue
            channels = graph.types[node.outputs[0]].shape[2]
            slack = TIE if op.count >= MANY_THRESHOLDS else 0.0
            steps: list[EpilogueOp] | None
            if op.has_own_thresholds:
                steps = _counting(op, channels)
            else:
                steps = uniform_steps(op.thresholds, op.values, channels, slack)
            computes = op.count > MAX_PLANES or not _is_read_as_bits(graph, node)
            if steps is not None and computes:
                computed = replace(node, op=Elementwise(Epilogue(steps)))
                replace_node(graph, node, computed)
        refresh_types(graph)


def _counting(op: Quantize, channels: int) -> list[EpilogueOp] | None:
    """Thresholds that a value reaches, and what their number is worth; None of uneven levels."""
    step = even_step(op.values)
    if step is None or op.count <= MAX_PLANES:
        return None
    worth = np.full(channels, step, np.float32), np.full(channels, op.values[0], np.float32)
    return [Count(np.ascontiguousarray(op.thresholds.T)), ScaleBias(*worth)]


def _is_read_as_bits(graph: Graph, node: Node) -> bool:
    """Whether a sign, a quantizer or a convolution of few-valued weights follows."""
    seen, waiting = {node.outputs[0]}, [node.outputs[0]]
    while waiting:
        value = waiting.pop()
        for reader in graph.consumers(value):
            if isinstance(reader.op, Sign | Quantize):
                return True
            if isinstance(reader.op, Conv2D):
                if factor_weights(reader.op.weights) is not None:
                    return True
                continue
            new = [output for output in reader.outputs if output not in seen]
            seen.update(new)
            waiting += new
    return False
