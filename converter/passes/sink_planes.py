"""Sums of planes move down, towards the convolutions that read planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.infer import infer_added
from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import FloatArray, Graph, Node
from phonebit.converter.ops import Concat, MaxPool2D, PlaneSum, Reshape
from phonebit.converter.origins import Plane
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    refresh_types,
    replace_node,
)
from phonebit.converter.passes.chains import is_per_channel
from phonebit.converter.passes.planes import Planes, planes_of
from phonebit.format.records import DataType


class SinkPlanes(Pass):
    """Lets layers that only arrange or rescale a quantized value work on its planes.

    Given::

        q = offset + scale * bits; y = f(q)            # f: any function of each channel alone
        q = offset + scale * bits; y = max_pool(q)     # likewise reshape, concat

    Result::

        y = offset' + scale' * bits                    # f of the few levels that q has
        p = max_pool(bits, flip where scale < 0); y = offset + scale * p

    A step function of one value stays one whatever is done to its levels, and its planes are
    monotone in it, so they commute with the maximum.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):  # in execution order: a sum may sink through several layers
            if node.value is None or graph.types[node.value].dtype == DataType.BIT:
                continue
            if isinstance(node.op, MaxPool2D) and not node.op.epilogue.steps:
                self._pool(graph, node, node.op)
            elif isinstance(node.op, Reshape):
                self._reshape(graph, node, node.op)
            elif isinstance(node.op, Concat):
                self._concat(graph, node)
            elif len(node.inputs) == 1 and not isinstance(node.op, PlaneSum):
                self._rescale(graph, node)
        refresh_types(graph)

    @staticmethod
    def _rescale(graph: Graph, node: Node) -> None:
        value = node.inputs[0]
        channels = graph.types[value].shape[2]
        planes = planes_of(graph, value)
        if planes is None or not is_per_channel(node, channels):
            return
        levels = planes.levels[:, None, None, :]
        result = evaluate_node(node, [levels])[node.outputs[0]]
        total = planes.with_levels(result.reshape(planes.levels.shape))
        if total is not None:
            replace_node(graph, node, replace(node, op=total, inputs=list(planes.bits)))

    @staticmethod
    def _pool(graph: Graph, node: Node, op: MaxPool2D) -> None:
        planes = planes_of(graph, node.inputs[0])
        if planes is None or planes.binary:
            return  # the maximum is no matter of single bits of a number
        rising = np.all(planes.scales >= 0, axis=0)
        falling = np.all(planes.scales <= 0, axis=0) & ~rising
        if not np.all(rising | falling):
            return  # levels that are not in order: the maximum is no matter of single planes
        pooled = replace(op, flip=falling if falling.any() else None)
        _arrange(graph, node, pooled, planes, planes.scales, planes.offset)

    @staticmethod
    def _reshape(graph: Graph, node: Node, op: Reshape) -> None:
        planes = planes_of(graph, node.inputs[0])
        if planes is None:
            return
        before, after = graph.types[node.inputs[0]].shape[2], op.shape[2]
        scales, offset = _reshaped(planes.scales, before, after), planes.offset[None]
        moved = _reshaped(offset, before, after)
        if scales is not None and moved is not None:
            _arrange(graph, node, op, planes, scales, moved[0])

    @staticmethod
    def _concat(graph: Graph, node: Node) -> None:
        parts = [planes_of(graph, value) for value in node.inputs]
        known = [part for part in parts if part is not None]
        kinds = {(part.count, part.binary) for part in known}
        if len(known) != len(parts) or len(kinds) != 1:
            return
        planes = []
        for index in range(known[0].count):
            name = _plane(graph, node, index)
            inputs = [part.bits[index] for part in known]
            planes.append(replace(node, name=name, inputs=inputs, value=name))
        scales = np.concatenate([part.scales for part in known], axis=1)
        offset = np.concatenate([part.offset for part in known])
        op = PlaneSum(scales, offset, known[0].binary)
        total = replace(node, op=op, inputs=[plane.name for plane in planes])
        replace_node(graph, node, *planes, total)
        infer_added(graph, [*planes, total])


def _plane(graph: Graph, node: Node, index: int) -> str:
    """A name for a plane of what ``node`` arranges."""
    value = node.outputs[0]
    name = fresh_value(graph, f"{value}/plane{index}")
    graph.origins[name] = Plane(value, index)
    return name


def _reshaped(numbers: NDArray[np.float32], before: int, after: int) -> FloatArray | None:
    """Per-channel numbers (n, C) after a reshape; None if a channel would get several."""
    if np.all(numbers == numbers[:, :1]):
        return np.repeat(numbers[:, :1], after, axis=1)
    return np.tile(numbers, (1, after // before)) if after % before == 0 else None


def _arrange(
    graph: Graph,
    node: Node,
    op: MaxPool2D | Reshape,
    planes: Planes,
    scales: FloatArray,
    offset: FloatArray,
) -> None:
    """Puts ``op`` in front of each plane and the sum after them."""
    moved = []
    for index, bits in enumerate(planes.bits):
        name = _plane(graph, node, index)
        moved.append(replace(node, name=name, op=op, inputs=[bits], value=name))
    sum_op = PlaneSum(scales, offset, planes.binary)
    total = replace(node, op=sum_op, inputs=[plane.name for plane in moved])
    replace_node(graph, node, *moved, total)
    infer_added(graph, [*moved, total])
