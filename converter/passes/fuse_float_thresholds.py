"""Signs of float values become comparisons with a float threshold."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Directions, FloatArray, Graph, Node
from phonebit.converter.ops import Elementwise, Sign
from phonebit.converter.ops.epilogue import Count, Epilogue, EpilogueOp, ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    merged_sources,
    only_consumer,
    refresh_types,
    remove_node,
    replace_node,
)
from phonebit.converter.passes.chains import (
    Chain,
    chain_to_sign,
    directions,
    is_per_channel,
)

INFINITY_KEY: Final = 0x7F800000
"""Bit pattern of +inf: keys -INFINITY_KEY..INFINITY_KEY number all float32 in ascending order."""


class FuseFloatThresholds(Pass):
    """Replaces every Sign, with the monotone steps before it, by one comparison per channel.

    Given::

        n = batch_norm(v); b = sign(n)          # n is not needed elsewhere
        c = sign(u)

    Result::

        b = elementwise(v): v >= t[c]     # or v * (-1 where n decreases) >= t[c]
        c = elementwise(u): u >= 0

    Counts of thresholds take the steps before them likewise.

    t is the smallest float32 that the chain maps to a non-negative number, found by bisection over
    all float32, so the decision is the framework's for every value v, bit for bit. (A channel that
    never fires gets t = +inf, one that always does -inf.) FuseEpilogues moves the comparison into
    the op that computes v.
    """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Sign) or _counted(node) is not None:
                self._fuse(graph, self._longest_chain(graph, node))
        refresh_types(graph)

    @staticmethod
    def _longest_chain(graph: Graph, sign: Node) -> Chain:
        """Grows the chain upwards while only signs need its values and it is provably monotone.

        The planes of a quantizer share the steps before them; each gets a threshold of its own.
        """
        best = Chain(sign.inputs[0], [], sign)
        while True:
            above = graph.producer(best.value)
            if _counted(sign) is None:
                is_free = _only_signs_read(graph, best.value)
            else:
                is_free = only_consumer(graph, best.value) is not None
            if not above.inputs or not is_free:
                return best
            value = above.inputs[0]
            channels = graph.types[value].shape[2]
            longer = Chain(value, [above, *best.steps], best.sign)
            if not is_per_channel(above, channels) or directions(longer, channels) is None:
                return best
            best = longer

    @staticmethod
    def _fuse(graph: Graph, chain: Chain) -> None:
        channels = graph.types[chain.value].shape[2]
        trend = directions(chain, channels)
        assert trend is not None  # _longest_chain saw to it; a bare Sign is monotone
        steps: list[EpilogueOp] = []
        if np.any(trend < 0):
            flip = np.where(trend < 0, np.float32(-1), np.float32(1))
            steps.append(ScaleBias(flip, np.zeros_like(flip)))
        counted = _counted(chain.sign)
        rows = float_thresholds(chain, trend, 1 if counted is None else counted.thresholds.shape[1])
        if counted is None:
            epilogue = Epilogue(steps, rows[0])
        else:
            epilogue = Epilogue([*steps, Count(np.ascontiguousarray(rows.T))])
        fused = Node(
            chain.sign.name,
            Elementwise(epilogue),
            [chain.value],
            value=None if counted is None else chain.sign.outputs[0],
            bits=chain.sign.outputs[0] if counted is None else None,
            sources=merged_sources(*chain.nodes),
        )
        replace_node(graph, chain.sign, fused)
        for node in reversed(chain.steps):
            if not graph.consumers(node.outputs[0]):
                remove_node(graph, node)


def _only_signs_read(graph: Graph, value: str) -> bool:
    """Whether a value is needed for nothing but bits."""
    readers = graph.consumers(value)
    chains = [chain_to_sign(graph, value, node) for node in readers]
    return value not in graph.outputs and all(
        chain is not None or _is_comparison(node)
        for chain, node in zip(chains, readers, strict=True)
    )


def _is_comparison(node: Node) -> bool:
    """Whether this is what a sign of the same value has already become."""
    return isinstance(node.op, Elementwise) and node.value is None and len(node.inputs) == 1


def _counted(node: Node) -> Count | None:
    """The count that is a node's only step."""
    steps = node.op.epilogue.steps if isinstance(node.op, Elementwise) else []
    return steps[0] if len(steps) == 1 and isinstance(steps[0], Count) else None


def float_thresholds(chain: Chain, trend: Directions, count: int = 1) -> FloatArray:
    """Smallest t, in row i, with chain(t) > i; on decreasing channels, of chain(-t).

    A sign is above 0 where it is +1, so it has one row.
    """
    shape = (count, trend.size)
    sign = np.where(trend < 0, np.float32(-1), np.float32(1))
    rank = np.arange(count)[:, None]

    def fires(key: NDArray[np.int64]) -> NDArray[np.bool_]:
        reached: NDArray[np.bool_] = chain.results(_float_of_key(key) * sign) > rank
        return reached

    low = np.broadcast_to(-_last_number(chain, -sign), shape)
    high = np.broadcast_to(_last_number(chain, sign), shape)
    always, never = fires(low), ~fires(high)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        true = fires(middle)
        high = np.where(true, middle, high)
        low = np.where(true, low, middle)
    found = _float_of_key(high)
    found = np.where(always, np.float32(-np.inf), found)
    return np.where(never, np.float32(np.inf), found)


def _last_number(chain: Chain, side: FloatArray) -> NDArray[np.int64]:
    """Per channel the key of the last value, from 0 towards ``side``, that does not become NaN.

    That is inf, unless a slope is 0; or a number, if a step overflows and the next one multiplies
    by 0.
    """

    def is_number(key: NDArray[np.int64]) -> NDArray[np.bool_]:
        row: NDArray[np.bool_] = chain.are_numbers(_float_of_key(key[None]) * side)[0]
        return row

    last = np.full(side.size, INFINITY_KEY, np.int64)
    first = np.where(is_number(last), last, 0)
    while np.any(last - first > 1):
        middle = (first + last) // 2
        true = is_number(middle)
        first, last = np.where(true, middle, first), np.where(true, last, middle)
    return first


def _float_of_key(key: NDArray[np.int64]) -> FloatArray:
    """The float32 at a place in the ascending order of all float32; key 0 is +0."""
    magnitude = np.abs(key).astype(np.uint32).view(np.float32)
    return np.where(key < 0, -magnitude, magnitude)
