"""Chains of per-channel steps that end in a sign: what becomes a threshold.

A chain maps the values of one channel to -1/+1, independently of all other elements. Every step is
float32 arithmetic that rounds monotonically (x <= y implies round(x) <= round(y)), so a chain of
steps that are monotone in the reals is monotone in float32 too, and its decision is a comparison
with one number per channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Directions, Graph, Node
from phonebit.converter.ops import Sign
from phonebit.converter.passes.base import only_consumer


@dataclass
class Chain:
    """Per-channel nodes in order, and the Sign (or Count) that ends them; they read ``value``."""

    value: str
    steps: list[Node]
    sign: Node

    @property
    def nodes(self) -> list[Node]:
        """All of the chain, the sign last."""
        return [*self.steps, self.sign]

    def decide(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the chain's sign is +1 for values of shape (A, C), by the interpreter itself."""
        return self.results(values) > 0

    def results(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the chain makes of values of shape (A, C)."""
        return self._stages(values)[-1]

    def are_numbers(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where no step makes NaN of values of shape (A, C): inf of an overflow, times 0."""
        found = np.ones(values.shape, np.bool_)
        for stage in self._stages(values):
            found &= ~np.isnan(stage)
        return found

    def _stages(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """What one node after the other makes of values of shape (A, C)."""
        array = values.reshape(values.shape[0], 1, 1, values.shape[1]).astype(np.float32)
        stages = []
        with np.errstate(all="ignore"):  # searches visit huge values on purpose
            for node in self.nodes:
                array = evaluate_node(node, [array])[node.outputs[0]]
                stages.append(array.reshape(values.shape))
        return stages


def chain_to_sign(graph: Graph, value: str, first: Node) -> Chain | None:
    """Follows ``value`` from its reader ``first`` to a Sign.

    Every value between is read by the chain alone, so that nothing is lost when it disappears.

    Returns:
        The chain, or None if the road forks, leaves the channel, or does not end in a Sign.
    """
    steps: list[Node] = []
    channels = graph.types[value].shape[2]
    node = first
    while not isinstance(node.op, Sign):
        if not is_per_channel(node, channels):
            return None
        steps.append(node)
        following = only_consumer(graph, node.outputs[0])
        if following is None:
            return None
        node = following
    return Chain(value, steps, node)


def is_per_channel(node: Node, channels: int) -> bool:
    """Whether a node maps each channel's values by a function of its own, of that value alone."""
    return len(node.inputs) == 1 and node.bits is None and node.op.is_per_channel(channels)


def directions(chain: Chain, channels: int) -> Directions | None:
    """Per channel +1 if the chain never decreases, -1 if it never increases, 0 if it is constant.

    Returns:
        None if some step is not monotone, or not provably so in float32 (exp and tanh are computed
        by polynomials that need not be monotone to the last bit).
    """
    total = np.ones(channels, np.int8)
    for node in chain.steps:
        signs = node.op.directions()
        if signs is None:
            return None
        total = (total * signs).astype(np.int8)
    return total


def is_shape_free(chain: Chain) -> bool:
    """Whether no step has parameters per channel, so that the chain commutes with a reshape."""
    return all(node.op.is_shape_free for node in chain.steps)
