"""Scale, bias, batch normalisation, activation and sign become one integer comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops.convolution import Convolution
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    merged_sources,
    only_consumer,
    refresh_types,
    remove_node,
    replace_node,
)
from phonebit.converter.passes.chains import Chain, chain_to_sign, directions
from phonebit.converter.passes.integer_thresholds import Thresholds, find_thresholds, reach_of


class FuseIntegerThresholds(Pass):
    """Ends an integer convolution in packed bits when only its sign is needed.

    Given::

        s = binary_conv(x, w); v = s * alpha + 0; n = batch_norm(v); b = sign(n)

    Result::

        b = binary_conv(x, w, -w on channels that n decreases; acc >= T[c])

    T is found by asking the chain at every reachable accumulator (integer_thresholds.py). Chains
    that change their mind twice on some channel stay floats, and the report says so.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            op = node.op
            if not isinstance(op, Convolution) or node.value is None or node.bits is not None:
                continue
            if not op.is_integer(graph.types[node.inputs[0]].dtype):
                continue
            first = only_consumer(graph, node.value)
            chain = chain_to_sign(graph, node.value, first) if first is not None else None
            if chain is not None and not op.epilogue.steps:
                self._fuse(graph, node, op, chain, log)
        refresh_types(graph)

    @staticmethod
    def _fuse(graph: Graph, node: Node, op: Convolution, chain: Chain, log: PassLog) -> None:
        found = thresholds_of(op, chain)
        if found is None or found.mixed:
            channels = "too many accumulators" if found is None else f"channels {found.mixed[:8]}"
            log.notes.append(
                f"{node.name}: no integer threshold, its activation is not monotone ({channels}); "
                "kept as float32 steps"
            )
            return
        fused_op = op.with_epilogue(Epilogue([], found.threshold))
        fused_op.weights = negate_filters(op.weights, found.negate)
        fused = replace(
            node,
            op=fused_op,
            value=None,
            bits=chain.sign.outputs[0],
            sources=merged_sources(node, *chain.nodes),
        )
        replace_node(graph, node, fused)
        for other in chain.nodes:
            remove_node(graph, other)


def thresholds_of(op: Convolution, chain: Chain) -> Thresholds | None:
    """The thresholds that make ``op`` decide as the chain does; None if there is no way to know."""
    channels, reach = op.weights.shape[0], reach_of(op)
    ends = np.repeat([[reach.low], [reach.high]], channels, axis=1)
    monotone = directions(chain, channels) is not None and bool(chain.are_numbers(ends).all())
    return find_thresholds(chain.decide, reach, channels, monotone)


def negate_filters(weights: NDArray[Any], negate: NDArray[np.bool_]) -> NDArray[Any]:
    """Weights (Cout, ...) with the marked filters negated; padded taps follow, as w * pad_value."""
    if not negate.any():
        return weights
    sign = np.where(negate, weights.dtype.type(-1), weights.dtype.type(1))
    negated: NDArray[Any] = weights * sign[:, None, None, None]
    return negated
