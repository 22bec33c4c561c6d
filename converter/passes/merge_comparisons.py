"""Sums of comparisons become the quantizer that they spell out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from phonebit.converter.infer import infer_added
from phonebit.converter.ir import SMALLEST, FloatArray, Graph, Node
from phonebit.converter.ops import Elementwise, Quantize, Sign
from phonebit.converter.ops.epilogue import AddTensor, EpilogueOp, ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    only_consumer,
    replace_node,
)

SIGN_VALUES: Final = np.array([-1, 1], np.float32)


class MergeComparisons(Pass):
    """Replaces sums of two-valued quantizers of one tensor by one quantizer.

    Given::

        b0 = quantize(x - t0; 0; 0, 1); b1 = quantize(x - t1; 0; 0, 1); ...
        q = (b0 + b1 + ...) * s + o             # t0, t1, ...: a number for each channel; s > 0

    Result::

        q = quantize(x; t0, t1, ... in order; o, s + o, 2 s + o, ...)

    The difference is negative, zero or positive as the comparison says: float32 rounds none of them
    to another.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in reversed(list(graph.nodes)):
            if not _is_sum(node):
                continue
            reader = only_consumer(graph, node.outputs[0])
            if reader is None or not _is_sum(reader):
                self._merge(graph, node)

    @staticmethod
    def _merge(graph: Graph, node: Node) -> None:
        terms = _terms(graph, node)
        if terms is None or any(not term.fits(terms[0]) for term in terms):
            return
        rows = np.sort(np.stack([term.thresholds for term in terms]), axis=0)
        steps = np.arange(len(terms) + 1, dtype=np.float32)
        values = len(terms) * terms[0].values[0] + steps * np.diff(terms[0].values)
        distinct = np.all(np.diff(rows, axis=0) > 0)
        if distinct and np.all(rows == rows[:, :1]):
            rows = rows[:, 0]
        values = values.astype(np.float32)
        reader = only_consumer(graph, node.outputs[0])
        scale = None if reader is None else _scale_of_all(reader)
        if reader is not None and scale is not None:  # would hide the quantizer from what pools it
            node, values = reader, values * scale.scale[0] + scale.bias[0]
        op = Quantize(rows, values)
        merged = replace(node, op=op, inputs=[terms[0].source])
        replace_node(graph, node, merged)
        infer_added(graph, [merged])


@dataclass(frozen=True)
class _Term:
    """values[source >= thresholds[c]]."""

    source: str
    thresholds: FloatArray
    values: FloatArray

    def fits(self, other: _Term) -> bool:
        return self.source == other.source and np.array_equal(self.values, other.values)


def _terms(graph: Graph, node: Node) -> list[_Term] | None:
    """The comparisons that a tree of sums adds up; None if it adds anything else."""
    found: list[_Term] = []
    for value in node.inputs:
        below = graph.producer(value)
        if _is_sum(below) and only_consumer(graph, value) is node:
            inner = _terms(graph, below)
        else:
            term = _term(graph, below)
            inner = None if term is None else [term]
        if inner is None:
            return None
        found += inner
    return found


def _term(graph: Graph, node: Node) -> _Term | None:
    op = node.op
    if isinstance(op, Sign):
        thresholds, values = np.array([op.threshold], np.float32), SIGN_VALUES
    elif isinstance(op, Quantize) and op.count == 1:
        thresholds, values = op.thresholds.reshape(-1), op.values
    else:
        return None
    source = node.inputs[0]
    channels = graph.types[source].shape[2]
    everywhere = np.full(channels, thresholds, np.float32)
    above = graph.producer(source)
    shift = _only_step(above)
    at_zero = thresholds.size == 1 and float(thresholds[0]) in (0.0, SMALLEST)
    if isinstance(shift, ScaleBias) and np.all(shift.scale == 1) and at_zero:
        limit = -shift.bias + np.float32(0)
        past = np.nextafter(limit, np.float32(np.inf))
        return _Term(above.inputs[0], limit if thresholds[0] == 0 else past, values)
    return _Term(source, everywhere, values)


def _only_step(node: Node) -> EpilogueOp | None:
    is_step = isinstance(node.op, Elementwise) and len(node.op.epilogue.steps) == 1
    return node.op.epilogue.steps[0] if is_step and isinstance(node.op, Elementwise) else None


def _scale_of_all(node: Node) -> ScaleBias | None:
    """The only step of a node, if it is the same positive scale and bias for all channels."""
    step = _only_step(node)
    if not isinstance(step, ScaleBias) or step.scale[0] <= 0:
        return None
    is_even = np.all(step.scale == step.scale[0]) and np.all(step.bias == step.bias[0])
    return step if is_even else None


def _is_sum(node: Node) -> bool:
    step = _only_step(node)
    return isinstance(step, AddTensor) and len(node.inputs) == 2 and node.bits is None
