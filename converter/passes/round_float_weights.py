"""Real weights become halves, where that costs no more than their last bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from phonebit.converter.ir import Conv2D, FloatArray, Graph, Node
from phonebit.converter.passes.base import Pass, PassLog, replace_node, with_op
from phonebit.converter.writer import weights_type
from phonebit.format.records import DataType

HALF_ROUNDING: Final = 2.0**-11
"""Half the distance of two neighbouring halves, relative to the smaller one's power of two."""


class RoundFloatWeights(Pass):
    """Rounds the weights of real convolutions to the nearest half, ties to even.

    The one pass that changes what the network computes, and so the last: whatever reads the graph
    behind it (the reference interpreter, the writer, verification) sees the rounded weights. Sums
    stay float32. A layer keeps float32 if some filter would lose more than the last bits of its
    largest weight: where that is beyond the largest half (65504) or below the smallest normal one
    (6.1e-5).

    Given::

        y = conv2d(x, weights = [0.1, -3.0])

    Result::

        y = conv2d(x, weights = [0.0999755859375, -3.0], stored as F16)
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place and notes what became of how many weights."""
        rounded: dict[str, float] = {}
        count = 0
        for node in list(graph.nodes):
            if not _has_real_weights(graph, node):
                continue
            assert isinstance(node.op, Conv2D)
            weights, error = round_to_half(node.op.weights)
            if error > HALF_ROUNDING:
                log.notes.append(_kept(node.name, node.op.weights))
                continue
            rounded[node.name] = error
            count += weights.size
            op = replace(node.op, weights=weights, stored_as=DataType.F16)
            replace_node(graph, node, with_op(node, op))
        log.notes.append(_summary(rounded, count))


def round_to_half(weights: FloatArray) -> tuple[FloatArray, float]:
    """Weights rounded to halves, and the largest error in units of its filter's largest weight.

    Args:
        weights: float32 (Cout, KH, KW, Cin / groups).

    Returns:
        float32 of the same shape; infinite where a weight is beyond the largest half, and so is
        the error then.
    """
    with np.errstate(over="ignore"):
        rounded = weights.astype(np.float16).astype(np.float32)
    filters = weights.reshape(len(weights), -1).astype(np.float64)
    errors = np.abs(rounded.reshape(filters.shape) - filters).max(axis=1)
    largest = np.abs(filters).max(axis=1)
    used = largest > 0
    return rounded, float(np.max(errors[used] / largest[used], initial=0.0))


def _has_real_weights(graph: Graph, node: Node) -> bool:
    return (
        isinstance(node.op, Conv2D)
        and graph.types[node.inputs[0]].dtype == DataType.F32
        and weights_type(node.op) == DataType.F32
    )


def _kept(name: str, weights: FloatArray) -> str:
    largest = np.abs(weights.reshape(len(weights), -1)).max(axis=1)
    low, high = float(largest[largest > 0].min()), float(largest.max())
    return (
        f"{name}: weights stay float32: the filters' largest are {low:.1e} to {high:.1e}, "
        "halves hold 6.1e-05 to 6.6e+04"
    )


def _summary(rounded: dict[str, float], count: int) -> str:
    if not rounded:
        return "no layer's weights are stored as float16"
    worst = max(rounded, key=lambda name: rounded[name])
    return (
        f"{len(rounded)} layer{'s' if len(rounded) > 1 else ''} with weights stored as float16: "
        f"{2 * count / 1e3:.1f} kB instead of {4 * count / 1e3:.1f}; rounding changes a weight by "
        f"at most {rounded[worst]:.1e} of its filter's largest ({worst})"
    )
