"""What the source computes in front of its signs, channel by channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Elementwise, Input, Sign
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.chains import is_per_channel
from phonebit.verification.source_bits import BitSource, MovedBits, OwnBits, PlaneBits
from phonebit.verification.source_trace import Array, SourceTrace


@dataclass(frozen=True)
class SignChain:
    """Nodes of the source that map each channel's values by themselves; the last is a sign.

    Attributes:
        top: name of the value that the first one reads.
        nodes: in order.
    """

    top: str
    nodes: list[Node]

    def values(self, trace: SourceTrace, count: int) -> list[Array]:
        """What each node reads, for the first ``count`` samples, (N, height, width, channels)."""
        found = [trace.values[self.top][:count].astype(np.float32)]
        for node in self.nodes[:-1]:
            name = node.outputs[0]
            own = trace.values.get(name)
            made: Array = evaluate_node(node, [found[-1]])[name]
            is_own = own is not None and own.shape[1:] == made.shape[1:]
            found.append(own[:count].astype(np.float32) if own is not None and is_own else made)
        return found


def sign_chains(source: Graph, bits: Mapping[str, BitSource]) -> dict[str, SignChain]:
    """The chains in front of signs.

    Args:
        source: the source graph.
        bits: how the file's bits follow from the source, by their name.

    Returns:
        By the same names, those of bits that a sign makes.
    """
    found = {name: _chain(source, one) for name, one in bits.items()}
    return {name: longest(source, chain) for name, chain in found.items() if chain is not None}


def _chain(source: Graph, bits: BitSource) -> SignChain | None:
    if isinstance(bits, MovedBits):
        return SignChain(bits.start, list(bits.chain))
    if isinstance(bits, OwnBits):
        node = source.producer(bits.name)
        return SignChain(node.inputs[0], [node]) if isinstance(node.op, Sign) else None
    if not isinstance(bits, PlaneBits) or bits.real is None:
        return None
    node = source.producer(bits.value)
    threshold = bits.op.thresholds[bits.index]
    if not bits.op.has_own_thresholds:
        return SignChain(bits.real, [replace(node, op=Sign(float(threshold)))])
    shift = Elementwise(Epilogue([ScaleBias(np.ones_like(threshold), -threshold)]))
    name = f"{bits.value}/above threshold"
    sign = replace(node, op=Sign(), inputs=[name])
    return SignChain(bits.real, [replace(node, op=shift, value=name), sign])


def longest(source: Graph, chain: SignChain) -> SignChain:
    """With all nodes above that treat channels alike; those below may be of some channels only."""
    top, nodes = chain.top, chain.nodes
    channels = source.types[top].shape[2]
    while True:
        node = source.producer(top)
        if isinstance(node.op, Input) or not is_per_channel(node, channels):
            return SignChain(top, nodes)
        top, nodes = node.inputs[0], [node, *nodes]
