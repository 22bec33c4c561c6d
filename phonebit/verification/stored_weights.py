"""Float weights that a file stores rounded: the source with these is what it is measured by.

A file with weights stored as F16 or I8 computes another network than its source, as it was asked
to. What must be right is that its weights are the source's, rounded as the converter does it, and
that its layers compute with them. So the source's convolution is evaluated once more with rounded
weights: the layer is compared with that, and how far that is from the source's own value is what
the rounding does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Input
from phonebit.converter.passes.quantize_float_weights import quantized
from phonebit.converter.passes.round_float_weights import round_to_half
from phonebit.format.records import DataType
from phonebit.verification.source_trace import SourceTrace


@dataclass(frozen=True)
class RoundedLayer:
    """A convolution of the source whose weights the file stores rounded.

    Attributes:
        node: the source's, with rounded weights.
        stored_as: "f16" or "i8".
    """

    node: Node
    stored_as: str


class StoredWeights:
    """The layers of a file with rounded weights.

    Args:
        file: the file's graph.
        source: the source graph.

    Attributes:
        layers: by the name of the file's op. A layer whose weights are not those of the source's
            convolution of the same name, rounded, is not here: it is compared with the source's own
            values, like any other.
    """

    def __init__(self, file: Graph, source: Graph) -> None:
        origins = {node.name: node for node in source.nodes if isinstance(node.op, Conv2D)}
        found = {node.name: _rounded(node, origins.get(node.name)) for node in file.nodes}
        self.layers = {name: layer for name, layer in found.items() if layer is not None}

    def layer_trace(
        self, name: str, trace: SourceTrace, kept: Collection[str], wanted: Collection[str]
    ) -> tuple[SourceTrace, float]:
        """What the source would compute, were one layer's weights those of the file.

        Args:
            name: of the file's op.
            trace: the source's values.
            kept: names of values that stay as they are.
            wanted: names of the values of interest.

        Returns:
            A trace with these; and the largest change of the convolution's own value, as a share of
            its largest.
        """
        node = self.layers[name].node
        value = node.outputs[0]
        rounded = evaluate_node(node, [trace.values[operand] for operand in node.inputs])[value]
        own = trace.values[value]
        change = np.abs(rounded.astype(np.float64) - own).max()
        share = float(change / max(float(np.abs(own).max()), np.finfo(np.float32).tiny))
        return trace.replay({value: rounded}, kept, wanted), share

    def whole_trace(self, trace: SourceTrace) -> SourceTrace:
        """What the source would compute with all of the file's weights.

        Args:
            trace: the source's values; it is not changed.

        Returns:
            ``trace`` itself where no weights are rounded; else one in which all that depends on
            them follows by the source graph's operators.
        """
        if not self.layers:
            return trace
        changed = {layer.node.outputs[0]: layer.node for layer in self.layers.values()}
        again = SourceTrace(trace.graph, dict(trace.values), dict(trace.margins))
        stale: set[str] = set()
        for node in trace.graph.nodes:
            value = node.outputs[0]
            depends = value in changed or not stale.isdisjoint(node.inputs)
            if isinstance(node.op, Input) or not depends:
                continue
            operands = [again.values[operand] for operand in node.inputs]
            again.values.update(evaluate_node(changed.get(value, node), operands, again.margins))
            stale.add(value)
        return again


def _rounded(node: Node, origin: Node | None) -> RoundedLayer | None:
    if origin is None or not isinstance(node.op, Conv2D) or not isinstance(origin.op, Conv2D):
        return None
    stored, own = node.op.weights, origin.op.weights
    if stored.size != own.size:
        return None
    if node.op.stored_as == DataType.F16:
        units = weights = round_to_half(own)[0]
    elif node.op.stored_as == DataType.I8:
        units, scale = quantized(own)
        weights = units * scale.reshape(-1, 1, 1, 1)
    else:
        return None
    if not np.array_equal(units.ravel(), stored.ravel()):
        return None
    rounded = replace(origin, op=replace(origin.op, weights=weights))
    return RoundedLayer(rounded, node.op.stored_as.name.lower())
