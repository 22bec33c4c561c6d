"""Signs move up, towards the convolutions whose thresholds they will become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phonebit.converter.infer import infer_added
from phonebit.converter.ir import Graph, Node, Operator
from phonebit.converter.ops import Concat, MaxPool2D, Pad, Reshape, Sign
from phonebit.converter.origins import hoisted
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    only_consumer,
    remove_node,
    replace_node,
)
from phonebit.converter.passes.chains import (
    Chain,
    chain_to_sign,
    directions,
    is_per_channel,
    is_shape_free,
)
from phonebit.format.records import DataType


class HoistSigns(Pass):
    """Moves a Sign, with the per-channel steps before it, above layers that only arrange values.

    Given::

        p = max_pool(x); n = batch_norm(p); b = sign(n)
        c = concat(x, y); b = sign(c)
        r = reshape(x); b = sign(r)
        q = pad(x, v); b = sign(q)

    Result::

        n' = batch_norm(x); b' = sign(n'); b = max_pool(b', flip = channels that n decreases)
        b = concat(sign(x), sign(y))
        b = reshape(sign(x))
        b = pad(sign(x), sign(v))

    A monotone function f commutes with the maximum: f(max(x)) = max(f(x)) where f never decreases,
    and min(f(x)) where it never increases. Float32 rounding is monotone, so this is exact. Bits are
    32 times smaller than floats, and conv + pool + BN + sign becomes one threshold.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        place = 0
        while place < len(graph.nodes):
            node = graph.nodes[place]
            sources = list(node.inputs)
            if self._is_hoisted(graph, node):  # what is above may have a chain to a sign by that
                place = min(graph.place(_top(graph, source)) for source in sources)
            else:
                place += 1

    def _is_hoisted(self, graph: Graph, node: Node) -> bool:
        """Moves the signs after a node in front of it, if that is possible."""
        if not isinstance(node.op, MaxPool2D | Concat | Reshape | Pad):
            return False
        value = node.outputs[0]
        if graph.types[value].dtype == DataType.BIT:
            return False
        first = only_consumer(graph, value)
        chain = chain_to_sign(graph, value, first) if first is not None else None
        arrangement = self._arrangement(graph, node, chain) if chain is not None else None
        if chain is None or arrangement is None:
            return False
        self._move(graph, node, chain, arrangement)
        return True

    @staticmethod
    def _arrangement(graph: Graph, node: Node, chain: Chain) -> Operator | None:
        """The operator that does to bits what ``node`` did to floats; None if there is none."""
        op = node.op
        if isinstance(op, MaxPool2D):
            channels = graph.types[chain.value].shape[2]
            trend = directions(chain, channels)
            # A float that is needed elsewhere is computed anyway; pooling it is cheaper then.
            if trend is None or only_consumer(graph, node.inputs[0]) is None:
                return None
            return replace(op, flip=trend < 0 if np.any(trend < 0) else None)
        if isinstance(op, Concat):
            return op
        if isinstance(op, Reshape):
            return op if is_shape_free(chain) else None
        if isinstance(op, Pad) and not chain.steps:
            return replace(op, value=_sign_of(op.value, chain))
        return None

    @staticmethod
    def _move(graph: Graph, node: Node, chain: Chain, arrangement: Operator) -> None:
        """Replaces node and chain by one chain per input of ``node`` and the same op on bits."""
        bits: list[str] = []
        added: list[Node] = []
        begin = 0
        for number, source in enumerate(node.inputs):
            channels = graph.types[source].shape[2]
            part = slice(begin, begin + channels) if isinstance(node.op, Concat) else slice(None)
            begin += channels
            suffix = f"/{number}" if len(node.inputs) > 1 else ""
            copies = _copy_chain(graph, chain, source, part, suffix, number)
            added += copies
            bits.append(copies[-1].outputs[0])
        result = replace(node, op=arrangement, inputs=bits, value=chain.sign.outputs[0])
        for other in chain.nodes:
            remove_node(graph, other)
        replace_node(graph, node, *added, result)
        infer_added(graph, [*added, result])


def _top(graph: Graph, value: str) -> Node:
    """The node that the chain of per-channel nodes down to ``value`` begins after."""
    node = graph.producer(value)
    while node.inputs and is_per_channel(node, graph.types[node.inputs[0]].shape[2]):
        node = graph.producer(node.inputs[0])
    return node


def _sign_of(value: float, chain: Chain) -> float:
    assert isinstance(chain.sign.op, Sign)
    return 1.0 if value >= chain.sign.op.threshold else -1.0


def _copy_chain(
    graph: Graph, chain: Chain, source: str, part: slice, suffix: str, operand: int
) -> Sequence[Node]:
    """The chain's nodes again, reading ``source``, with parameters of the channels in ``part``."""
    copies = []
    for node in chain.nodes:
        value = fresh_value(graph, f"{node.outputs[0]}/hoisted{suffix}")
        graph.origins[value] = hoisted(graph.origins, node.outputs[0], operand)
        op = node.op.sliced(part)
        copies.append(
            replace(node, name=f"{node.name}{suffix}", op=op, inputs=[source], value=value)
        )
        source = value
    return copies
