"""Rescaling after the input's dequantization becomes part of it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from phonebit.converter.ir import FloatArray, Graph, Node
from phonebit.converter.ops import Dequantize, Elementwise
from phonebit.converter.ops.epilogue import ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    merged_sources,
    only_consumer,
    producer_of,
    remove_node,
    replace_node,
)

MAX_DENOMINATOR: Final = 1 << 12
MAX_INTEGER: Final = 1 << 20


class MergeDequantize(Pass):
    """Combines Dequantize and a rescaling layer, so that a first layer can fold both.

    Given::

        x = dequantize(u8, 1, 0); y = x * (1 / 127.5) - 1

    Result::

        y = dequantize(u8, 1 / 127.5, -1; rational (2 * u8 - 255) / 255)

    A rescaling factor that float32 cannot hold is taken for the simple fraction that rounds to it;
    the difference is within float32 rounding of the result.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Elementwise) or node.bits is not None:
                continue
            steps = op.epilogue.steps
            found = producer_of(graph, node.inputs[0], Dequantize)
            if found is None or len(steps) != 1 or not isinstance(steps[0], ScaleBias):
                continue
            if only_consumer(graph, node.inputs[0]) is node:
                self._merge(graph, found, node, steps[0])

    @staticmethod
    def _merge(graph: Graph, found: tuple[Node, Dequantize], node: Node, step: ScaleBias) -> None:
        source, inner = found
        offset = inner.offset.astype(np.float64) * step.scale + step.bias
        merged = Dequantize(
            (inner.scale.astype(np.float64) * step.scale).astype(np.float32),
            offset.astype(np.float32),
            _combined(inner.rational, step),
        )
        remove_node(graph, source)
        sources = merged_sources(source, node)
        replace_node(
            graph, node, replace(node, op=merged, inputs=list(source.inputs), sources=sources)
        )


def _combined(inner: tuple[int, int, int] | None, step: ScaleBias) -> tuple[int, int, int] | None:
    """(mul, add, divisor) of ((m * x + a) / d) * scale + bias, if all of it is simple fractions."""
    scale, bias = _fraction(step.scale), _fraction(step.bias)
    if inner is None or scale is None or bias is None:
        return None
    mul, add, divisor = inner
    slope, offset = Fraction(mul, divisor) * scale, Fraction(add, divisor) * scale + bias
    common = math.lcm(slope.denominator, offset.denominator)
    result = (int(slope * common), int(offset * common), common)
    return result if max(abs(number) for number in result) <= MAX_INTEGER else None


def _fraction(values: FloatArray) -> Fraction | None:
    """The simple fraction that rounds to all of ``values``."""
    if np.any(values != values[0]):
        return None
    fraction = Fraction(float(values[0])).limit_denominator(MAX_DENOMINATOR)
    return fraction if np.float32(float(fraction)) == values[0] else None
