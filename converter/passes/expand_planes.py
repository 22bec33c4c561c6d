"""Quantizers of several levels become bit-planes."""

from __future__ import annotations

import numpy as np

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Elementwise, PlaneSum, Quantize, Sign
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.origins import Plane
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

    Where each channel has its own thresholds, plane i is sign(v - t_i), which float32 rounds to no
    other sign.

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
        if op.count > MAX_PLANES:
            raise ConversionError(
                f"{node.name}: a quantizer of {op.values.size} levels",
                expected=f"at most {MAX_PLANES + 1}",
                hint="quantize to 4 bits or less, or leave the layer in full precision",
            )
        value = node.outputs[0]
        planes = []
        for index, threshold in enumerate(op.thresholds):
            plane = fresh_value(graph, f"{value}/plane{index}")
            graph.origins[plane] = Plane(value, index)
            source, sign = node.inputs[0], Sign()
            if op.has_own_thresholds:
                source, step = f"{plane}/shift", ScaleBias(np.ones_like(threshold), -threshold)
                shift = Elementwise(Epilogue([step]))
                planes.append(Node(source, shift, list(node.inputs), source, sources=node.sources))
            else:
                sign = Sign(float(threshold))
            planes.append(Node(plane, sign, [source], plane, sources=node.sources))
        scales, offset = planes_of_quantizer(op, graph.types[value].shape[2])
        total = Node(
            node.name,
            PlaneSum(scales, offset),
            [plane.name for plane in planes if isinstance(plane.op, Sign)],
            value,
            sources=node.sources,
        )
        replace_node(graph, node, *planes, total)
