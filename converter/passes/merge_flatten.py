"""A dense layer after a flatten becomes a convolution whose window is the whole map."""

from __future__ import annotations

from dataclasses import replace

from phonebit.converter.ir import Graph, Node, Window
from phonebit.converter.ops import Conv2D, Reshape
from phonebit.converter.passes.base import Pass, PassLog, merged_sources, producer_of


class MergeFlatten(Pass):
    """Replaces Reshape to (1, 1, H*W*C) + dense by a convolution over the unflattened map.

    Given::

        f = reshape(x (H, W, C), (1, 1, H*W*C)); y = conv(f, w (O, 1, 1, H*W*C))

    Result::

        y = conv(x, w as (O, H, W, C), kernel=(H, W))

    The NHWC order of the flattened elements is the (kh, kw, cin) order of the weights, so they only
    get a new shape. Bits keep their packing: flattening packed pixels whose channel count is no
    multiple of 32 would have to shift every word.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for index, node in enumerate(graph.nodes):
            merged = self._merged(graph, node)
            if merged is not None:
                graph.nodes[index] = merged

    @staticmethod
    def _merged(graph: Graph, node: Node) -> Node | None:
        op = node.op
        if not isinstance(op, Conv2D) or op.groups != 1 or any(op.window.pads):
            return None
        found = producer_of(graph, node.inputs[0], Reshape)
        if found is None or op.window.kernel != (1, 1) or found[1].shape[:2] != (1, 1):
            return None
        reshape = found[0]
        height, width, channels = graph.types[reshape.inputs[0]].shape
        weights = op.weights.reshape(-1, height, width, channels)
        return replace(
            node,
            op=replace(op, weights=weights, window=Window((height, width))),
            inputs=[reshape.inputs[0]],
            sources=merged_sources(reshape, node),
        )
