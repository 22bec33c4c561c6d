"""Layers that round to integers: where float rounding decides which one, and between which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Node
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.ops.epilogue.functions import Round
from phonebit.converter.ops.with_epilogue import EpilogueOperator, epilogue_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Rounding:
    """What a layer gives where its value is rounded down, and up.

    Attributes:
        distance: of the value from the middle between both, (N, height, width, channels).
        largest: of the magnitudes of all values in front of the rounding.
        low: the result of rounding down.
        high: the result of rounding up.
    """

    distance: Array
    largest: float
    low: Array
    high: Array

    def ties(self, result: Array, expected: Array, share: float, allowed: float) -> Array:
        """Where both results are among the two and rounding errors may choose either.

        Args:
            result: the engine's values.
            expected: what they should be.
            share: of the largest value, up to which rounding errors may move one.
            allowed: difference of results that are the same.
        """
        near = self.distance <= share * self.largest
        for values in (result, expected):
            gaps = np.minimum(np.abs(values - self.low), np.abs(values - self.high))
            near = near & (gaps <= allowed)
        return np.asarray(near)


def rounds(node: Node) -> bool:
    """Whether a layer gives a value that its epilogue has rounded."""
    epilogue = epilogue_of(node.op)
    steps = epilogue.steps if epilogue is not None else []
    return node.value is not None and any(isinstance(step, Round) for step in steps)


def rounding_of(node: Node, operands: Sequence[Array]) -> Rounding | None:
    """The rounding in a layer's epilogue, the last of several; None if there is none.

    Args:
        node: of the file's graph.
        operands: what it reads.
    """
    if not rounds(node) or not isinstance(node.op, EpilogueOperator) or node.value is None:
        return None
    steps = node.op.epilogue.steps
    places = [index for index, step in enumerate(steps) if isinstance(step, Round)]
    front = node.op.with_epilogue(Epilogue(steps[: places[-1]]))
    value = evaluate_node(replace(node, op=front, bits=None), list(operands))[node.value]
    rest = replace(node, op=Elementwise(Epilogue(steps[places[-1] + 1 :])), bits=None)
    others = list(operands[1:])
    low, high = (
        evaluate_node(rest, [whole, *others])[node.value]
        for whole in (np.floor(value), np.ceil(value))
    )
    distance = np.abs(value - np.floor(value) - 0.5)
    return Rounding(distance, float(np.abs(value).max(initial=0.0)), low, high)
