"""Chains of per-channel steps that end in a sign: what becomes a threshold.

A chain maps the values of one channel to -1/+1, independently of all other elements. Every step is
float32 arithmetic that rounds monotonically (x <= y implies round(x) <= round(y)), so a chain of
steps that are monotone in the reals is monotone in float32 too, and its decision is a comparison
with one number per channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import (
    BatchNorm,
    Clamp,
    Dequantize,
    Divide,
    Elementwise,
    Epilogue,
    Graph,
    Node,
    Operator,
    PRelu,
    Round,
    ScaleBias,
    Sigmoid,
    Sign,
    Step,
    Tanh,
)
from phonebit.converter.passes.base import only_consumer
from phonebit.converter.reference.epilogue import batch_norm_scale

Directions = NDArray[np.int8]


@dataclass
class Chain:
    """Per-channel nodes in order, and the Sign that ends them; they read ``value``."""

    value: str
    steps: list[Node]
    sign: Node

    @property
    def nodes(self) -> list[Node]:
        """All of the chain, the sign last."""
        return [*self.steps, self.sign]

    def decide(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the chain's sign is +1 for values of shape (A, C), by the interpreter itself."""
        array = values.reshape(values.shape[0], 1, 1, values.shape[1]).astype(np.float32)
        for node in self.nodes:
            array = evaluate_node(node, [array])[node.outputs[0]]
        return array.reshape(values.shape) > 0


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


def chains_from(graph: Graph, value: str) -> list[Chain]:
    """All chains that start at ``value``."""
    chains = (chain_to_sign(graph, value, node) for node in graph.consumers(value))
    return [chain for chain in chains if chain is not None]


def is_per_channel(node: Node, channels: int) -> bool:
    """Whether a node maps each channel's values by a function of its own, of that value alone."""
    op = node.op
    if isinstance(op, BatchNorm | Dequantize | Divide):
        return True
    if not isinstance(op, Elementwise) or len(node.inputs) != 1 or node.bits is not None:
        return False
    return steps_are_per_channel(op.epilogue, channels)


def steps_are_per_channel(epilogue: Epilogue, channels: int) -> bool:
    """Whether all steps of an epilogue are functions of each channel's value alone."""
    return all(_step_is_per_channel(step, channels) for step in epilogue.steps)


def _step_is_per_channel(step: Step, channels: int) -> bool:
    if isinstance(step, PRelu):
        return step.slope.size == channels
    return isinstance(step, ScaleBias | Clamp | Sigmoid | Tanh | Round)


def directions(chain: Chain, channels: int) -> Directions | None:
    """Per channel +1 if the chain never decreases, -1 if it never increases, 0 if it is constant.

    Returns:
        None if some step is not monotone, or not provably so in float32 (exp and tanh are computed
        by polynomials that need not be monotone to the last bit).
    """
    total = np.ones(channels, np.int8)
    for node in chain.steps:
        signs = _node_directions(node.op)
        if signs is None:
            return None
        total = (total * signs).astype(np.int8)
    return total


def _node_directions(op: Operator) -> Directions | None:
    if isinstance(op, BatchNorm):
        return np.sign(batch_norm_scale(op)).astype(np.int8)
    if isinstance(op, Dequantize):
        return np.sign(op.scale).astype(np.int8)
    if isinstance(op, Divide):
        return np.sign(op.divisor).astype(np.int8)
    assert isinstance(op, Elementwise)
    total: Directions = np.ones(1, np.int8)
    for step in op.epilogue.steps:
        if isinstance(step, ScaleBias):
            total = total * np.sign(step.scale).astype(np.int8)
        elif isinstance(step, PRelu):
            if np.any(step.slope < 0) or (step.positive is not None and np.any(step.positive < 0)):
                return None
        elif not isinstance(step, Clamp | Round):
            return None
    return total


def is_shape_free(chain: Chain) -> bool:
    """Whether no step has parameters per channel, so that the chain commutes with a reshape."""
    return all(
        isinstance(node.op, Elementwise)
        and all(isinstance(step, Clamp | Sigmoid | Tanh | Round) for step in node.op.epilogue.steps)
        for node in chain.steps
    )


def slice_channels(op: Operator, channels: slice) -> Operator:
    """A chain's operator restricted to some channels."""
    if isinstance(op, BatchNorm):
        return replace(
            op,
            gamma=op.gamma[channels],
            beta=op.beta[channels],
            mean=op.mean[channels],
            variance=op.variance[channels],
        )
    if isinstance(op, Dequantize):
        return replace(op, scale=op.scale[channels], offset=op.offset[channels])
    if isinstance(op, Divide):
        return Divide(op.divisor[channels])
    if isinstance(op, Elementwise):
        return Elementwise(Epilogue([_slice_step(step, channels) for step in op.epilogue.steps]))
    return op


def _slice_step(step: Step, channels: slice) -> Step:
    if isinstance(step, ScaleBias):
        return ScaleBias(step.scale[channels], step.bias[channels])
    if isinstance(step, PRelu):
        positive = None if step.positive is None else step.positive[channels]
        return PRelu(step.slope[channels], positive)
    return step
