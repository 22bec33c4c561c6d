"""Batch normalization folded into the convolution before it, as deployed networks have it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import BatchNorm, Conv2D
from phonebit.converter.passes.base import copy_graph

Float64Array = NDArray[np.float64]


def fold_batch_norm(graph: Graph) -> Graph:
    """A float network without batch normalizations behind convolutions.

    ``scale (w x + b) + offset = (scale w) x + (scale b + offset)``, equal up to rounding. All float
    engines can do this themselves; done here, none is measured without it.

    Args:
        graph: source graph; it is not changed.
    """
    folded = copy_graph(graph)
    kept: list[Node] = []
    by_value: dict[str, Node] = {}
    for node in folded.nodes:
        source = by_value.get(node.inputs[0]) if node.inputs else None
        if (
            isinstance(node.op, BatchNorm)
            and source is not None
            and isinstance(source.op, Conv2D)
            and len(graph.consumers(node.inputs[0])) == 1
        ):
            source.op = _folded(source.op, node.op)
            source.value = node.value
            node = source
        else:
            kept.append(node)
        by_value |= dict.fromkeys(node.outputs, node)
    folded.nodes = kept
    return folded


def scale_and_offset(norm: BatchNorm) -> tuple[Float64Array, Float64Array]:
    """The two arrays (C,) with which batch normalization is x * scale[c] + offset[c]."""
    scale = norm.gamma / np.sqrt(norm.variance.astype(np.float64) + norm.epsilon)
    return scale, norm.beta - scale * norm.mean


def _folded(conv: Conv2D, norm: BatchNorm) -> Conv2D:
    scale, offset = scale_and_offset(norm)
    bias = 0.0 if conv.bias is None else conv.bias
    return Conv2D(
        weights=conv.weights * scale[:, None, None, None].astype(np.float32),
        window=conv.window,
        groups=conv.groups,
        pad_value=conv.pad_value,
        bias=(scale * bias + offset).astype(np.float32),
    )
