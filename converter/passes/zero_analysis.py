"""Can the value in front of a sign be exactly zero?

PyTorch's sign(0) is 0, so a network that uses it has a third level wherever zeros occur. Whether
they do depends on where the value comes from: sums of -1/+1 after a batch normalisation take few
values, which can all be tried; a ReLU makes zeros all the time; so does a convolution without bias
where the image is black, which images of one colour show; any other sum of real numbers is zero
only by an accident that is as rare as the float rounding which would undo it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.constant_inputs import constant_inputs
from phonebit.converter.interpreter import evaluate_node, run
from phonebit.converter.ir import FloatArray, Graph, Node
from phonebit.converter.ops import (
    Concat,
    Conv2D,
    Dequantize,
    Elementwise,
    Input,
    MaxPool2D,
    Pad,
    Reshape,
)
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.ops.with_epilogue import epilogue_of
from phonebit.converter.passes.chains import is_per_channel
from phonebit.converter.passes.planes import MAX_PLANES, from_levels
from phonebit.converter.passes.two_valued import split_scale

Occurrence = Literal["impossible", "possible", "likely"]
"""likely: zeros are among the few values that occur, something saturates there, or a region of one
colour becomes zero."""
Known = dict[str, Occurrence]

MAX_TRIED = 1 << 24
"""Above this many (accumulator, channel) pairs an integer layer counts as real-valued."""
SATURATED = np.float32(1e30)
ROUNDED = np.arange(-255.0, 256.0)
"""What rounding to 8 bits, signed or not, makes of values; zeros beyond them count as accidents."""


@dataclass(frozen=True)
class Tail:
    """The per-channel nodes (and reshapes) between a value and the sign that it ends in."""

    nodes: tuple[Node, ...] = ()

    def after(self, node: Node) -> Tail:
        """The tail with one more node in front."""
        return Tail((node, *self.nodes))

    def has_zero(self, values: NDArray[np.floating]) -> bool:
        """Whether some of the values (A, C) end in an exact zero."""
        array = values.astype(np.float32)
        with np.errstate(all="ignore"):  # saturated values overflow on purpose
            for node in self.nodes:
                if isinstance(node.op, Reshape):
                    array = np.tile(array, (1, node.op.shape[2] // array.shape[1]))
                else:
                    maps = array[:, None, None, :]
                    array = evaluate_node(node, [maps])[node.outputs[0]].reshape(array.shape)
        return bool(np.any(array == 0))

    def sliced(self, channels: slice) -> Tail | None:
        """The tail of some of the channels; None if reshapes keep it from being split."""
        if any(isinstance(node.op, Reshape) for node in self.nodes):
            return None
        return Tail(tuple(replace(n, op=n.op.sliced(channels)) for n in self.nodes))


def zeros_before(graph: Graph, values: Sequence[str]) -> list[Occurrence]:
    """Whether each of the values can be exactly zero."""
    known: Known = {}
    return [_zeros_before(graph, value, Tail(), known) for value in values]


def _zeros_before(graph: Graph, value: str, tail: Tail, known: Known) -> Occurrence:
    """The same of what the nodes of ``tail`` make of a value."""
    if tail.nodes:
        return _analysed(graph, value, tail, known)
    if value not in known:  # shortcuts lead to the same values again and again
        known[value] = _analysed(graph, value, tail, known)
    return known[value]


def _analysed(graph: Graph, value: str, tail: Tail, known: Known) -> Occurrence:
    node = graph.producer(value)
    op = node.op
    channels = graph.types[value].shape[2]
    levels = op.levels()
    if levels is not None:
        return _tried(tail, levels[:, None] * np.ones(channels))
    if isinstance(op, Dequantize):
        every = np.repeat(np.arange(256.0)[:, None], channels, axis=1)
        return _tried(tail.after(node), every)
    if isinstance(op, Input):
        return "likely" if tail.has_zero(np.zeros((1, channels))) else "possible"
    if is_per_channel(node, channels):
        if _gathers_at_zero(node, tail, channels):
            return "likely"
        return _zeros_before(graph, node.inputs[0], tail.after(node), known)
    if isinstance(op, Conv2D):
        values = integer_values(graph, node, op)
        return "possible" if values is None else _tried(tail, values)
    return _arranged(graph, node, tail, channels, known)


def zeros_of_constants(graph: Graph, values: Sequence[str]) -> set[str]:
    """Those of the values that are exactly zero somewhere when the inputs are of one colour."""
    inputs = {
        name: constant_inputs(
            graph.types[name].shape, graph.types[name].dtype, graph.preprocessing.get(name)
        )
        for name in graph.inputs
    }
    found = run(graph, inputs, dict.fromkeys(values))
    return {name for name, array in found.items() if np.any(array == 0)}


def _gathers_at_zero(node: Node, tail: Tail, channels: int) -> bool:
    """Whether many inputs of a per-channel node end in the same exact zero.

    Clamps and slopes of 0 saturate, rounding makes steps (a sigmoid's 0 is out of reach).
    """
    epilogue = epilogue_of(node.op)
    steps = [] if epilogue is None else epilogue.steps
    ones = np.ones(channels)
    saturates = any(step.saturates() for step in steps)
    if saturates and tail.after(node).has_zero(np.array([[-SATURATED], [SATURATED]]) * ones):
        return True
    rounds = [number for number, step in enumerate(steps) if step.makes_steps]
    if not rounds:
        return False
    after = replace(node, op=Elementwise(Epilogue(steps[rounds[-1] + 1 :])))
    return tail.after(after).has_zero(ROUNDED[:, None] * ones)


def _tried(tail: Tail, values: NDArray[np.floating]) -> Occurrence:
    return "likely" if tail.has_zero(values) else "impossible"


def _arranged(graph: Graph, node: Node, tail: Tail, channels: int, known: Known) -> Occurrence:
    """After layers that move values around, or combine them."""
    op = node.op
    zero = np.zeros((1, channels))
    if isinstance(op, Reshape):
        before = graph.types[node.inputs[0]].shape[2]
        if channels % before:
            return "possible"
        return _zeros_before(graph, node.inputs[0], tail.after(node), known)
    if isinstance(op, MaxPool2D):
        return _zeros_before(graph, node.inputs[0], tail, known)
    if isinstance(op, Pad):
        if tail.has_zero(zero + op.value):
            return "likely"
        return _zeros_before(graph, node.inputs[0], tail, known)
    if isinstance(op, Concat):
        return _worst_part(graph, node, tail, known)
    if not tail.has_zero(zero):
        return "possible"
    # From here on zeros in mean zeros out: sums of zeros, products with them, their averages.
    inner = [_zeros_before(graph, value, Tail(), known) == "likely" for value in node.inputs]
    return "likely" if op.makes_zeros(inner) else "possible"


def _worst_part(graph: Graph, node: Node, tail: Tail, known: Known) -> Occurrence:
    found: list[Occurrence] = []
    begin = 0
    for value in node.inputs:
        end = begin + graph.types[value].shape[2]
        part = tail.sliced(slice(begin, end))
        found.append("possible" if part is None else _zeros_before(graph, value, part, known))
        begin = end
    order: tuple[Occurrence, ...] = ("likely", "possible", "impossible")
    return next(occurrence for occurrence in order if occurrence in found)


def integer_values(graph: Graph, node: Node, op: Conv2D) -> FloatArray | None:
    """All values (A, Cout) that a convolution of quantized values with two-valued weights takes.

    Returns:
        None if it is no such convolution, or padding makes its offset vary along the border.
    """
    levels = levels_of(graph, node.inputs[0])
    factors = split_scale(op.weights)
    if levels is None or factors is None or len(levels) > MAX_PLANES + 1:
        return None
    scales, offset = from_levels(levels)
    if np.any(scales != scales[0, 0]) or np.any(offset != offset[0]):
        return None
    padded = any(op.window.pads)
    if padded and (offset[0] != 0 or op.pad_value != 0):
        return None
    planes, taps = len(scales), int(np.prod(op.weights.shape[1:]))
    step = 1 if padded and planes % 2 else 2
    accumulators = np.arange(-planes * taps, planes * taps + 1, step, dtype=np.float64)
    if accumulators.size * len(op.weights) > MAX_TRIED:
        return None
    alpha, signs = factors
    constant = float(offset[0]) * signs.sum(axis=(1, 2, 3), dtype=np.float64)
    values: FloatArray = (alpha * (accumulators[:, None] * float(scales[0, 0]) + constant)).astype(
        np.float32
    )
    return values if op.bias is None else values + op.bias


def levels_of(graph: Graph, value: str) -> FloatArray | None:
    """The few values (levels, C) that each channel takes, lowest threshold first, or None."""
    node = graph.producer(value)
    op = node.op
    channels = graph.types[value].shape[2]
    levels = op.levels()
    if levels is not None:
        return levels[:, None] * np.ones(channels, np.float32)
    if isinstance(op, MaxPool2D) and not op.epilogue.steps:
        return levels_of(graph, node.inputs[0])
    below = (
        levels_of(graph, node.inputs[0])
        if isinstance(op, Reshape) or (len(node.inputs) == 1 and is_per_channel(node, channels))
        else None
    )
    if below is None:
        return None
    if isinstance(op, Reshape):
        repeats = channels // below.shape[1]
        return np.tile(below, (1, repeats)) if channels % below.shape[1] == 0 else None
    result: FloatArray = evaluate_node(node, [below[:, None, None, :]])[node.outputs[0]]
    return result.reshape(below.shape)
