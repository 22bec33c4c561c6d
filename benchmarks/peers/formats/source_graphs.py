"""What all writers ask and change of a source graph: batch normalizations are folded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.keras.convolutions import same_padding
from phonebit.converter.ir import Graph, Node, Shape, Window
from phonebit.converter.ops import BatchNorm, Conv2D, Elementwise
from phonebit.converter.ops.epilogue import EpilogueOp
from phonebit.converter.passes.base import copy_graph
from phonebit.errors import ConversionError

Float64Array = NDArray[np.float64]


def fold_batch_norm(graph: Graph) -> Graph:
    """A float network without batch normalizations after convolutions.

    ``scale (w x + b) + offset = (scale w) x + (scale b + offset)``, equal up to rounding. All float
    engines can do this themselves; done here, none is measured without it.
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


def covers_map(op: Conv2D, shape: Shape) -> bool:
    """Whether a convolution is a dense layer: one window over the whole map."""
    return op.window.kernel == shape[:2] and not any(op.window.pads) and op.groups == 1


def single_step(op: Elementwise) -> EpilogueOp:
    """The step of a source graph's elementwise operator; each has one."""
    (step,) = op.epilogue.steps
    return step


def unsupported(node: Node, form: str, got: object) -> ConversionError:
    """The error of a writer that meets an operator, or a setting of it, that it cannot express."""
    return ConversionError(
        f"no {form} form of this layer",
        where=node.name,
        got=got if isinstance(got, str) else type(got).__name__,
        hint="add it to the writer in benchmarks/peers/formats/",
    )


def same_pads(window: Window, height: int, width: int) -> tuple[int, int, int, int]:
    """What TensorFlow's padding "same" adds to a map: (top, left, bottom, right)."""
    sides = zip((height, width), window.kernel, window.strides, window.dilation, strict=True)
    (top, bottom), (left, right) = (same_padding(*side) for side in sides)
    return top, left, bottom, right
