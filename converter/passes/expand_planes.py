"""Quantizers of several levels become planes of bits."""

from __future__ import annotations

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import PlaneSum, Quantize, Sign
from phonebit.converter.passes.base import Pass, PassLog, fresh_value, refresh_types, replace_node
from phonebit.converter.passes.planes import MAX_PLANES, planes_of_quantizer
from phonebit.errors import ConversionError


class ExpandPlanes(Pass):
    """Replaces every Quantize by one Sign a threshold, and the sum that gives its values back.

    Given::

        q = quantize(v; thresholds t0 < t1 < ..., values)

    Result::

        q/plane0 = sign(v; t0); q/plane1 = sign(v; t1); ...
        q = offset + scale0 * q/plane0 + scale1 * q/plane1 + ...

    Plane i is +1 where v >= t_i, so a value of level k has its first k planes set: a thermometer.
    n levels take n - 1 planes where a binary number would take log2(n); in return each plane is a
    comparison that a convolution's threshold can absorb, padding is one bit value for all of them,
    and a convolution adds them up by reading them as channels with the same weights.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Quantize):
                self._expand(graph, node, node.op)
        refresh_types(graph)

    @staticmethod
    def _expand(graph: Graph, node: Node, op: Quantize) -> None:
        if op.thresholds.size > MAX_PLANES:
            raise ConversionError(
                f"{node.name}: a quantizer of {op.values.size} levels",
                expected=f"at most {MAX_PLANES + 1}",
                hint="quantize to 4 bits or less, or leave the layer in full precision",
            )
        value = node.outputs[0]
        planes = []
        for index, threshold in enumerate(op.thresholds):
            plane = fresh_value(graph, f"{value}/plane{index}")
            planes.append(
                Node(plane, Sign(float(threshold)), list(node.inputs), plane, sources=node.sources)
            )
        scales, offset = planes_of_quantizer(op, graph.types[value].shape[2])
        total = Node(
            node.name,
            PlaneSum(scales, offset),
            [plane.name for plane in planes],
            value,
            sources=node.sources,
        )
        replace_node(graph, node, *planes, total)
