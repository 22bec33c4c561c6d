"""Quantizers of evenly spaced levels become the bits of their levels, where that is cheaper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from phonebit.converter.infer import infer_added
from phonebit.converter.ir import FloatArray, Graph, Node, Operator
from phonebit.converter.ops import BitPlanes, Concat, Conv2D, Elementwise, MaxPool2D, Quantize
from phonebit.converter.ops.bit_planes import MAX_PLANES as MAX_BITS
from phonebit.converter.ops.epilogue import Clamp, Count, Epilogue, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round
from phonebit.converter.origins import Level
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    only_consumer,
    replace_node,
)
from phonebit.converter.passes.chains import is_per_channel
from phonebit.converter.passes.planes import MAX_PLANES, binary_sum
from phonebit.converter.passes.two_valued import factor_weights
from phonebit.converter.passes.uniform_steps import even_step

MIN_THRESHOLDS: Final = 2
LARGEST_SUM: Final = 1 << 24
"""Weighted sums stay below, so that float32 holds them."""

# Nanoseconds of a core with AVX-512, roughly.
BINARY_MACS: Final = 1100.0
FLOAT_MACS: Final = 60.0
ADDED_NS: Final = 0.1
"""A partial sum for each output: twice that where it goes through memory, less in registers."""
PACKED_NS: Final = 0.1
"""A plane that whatever computes the levels packs, for each input: of whole words only."""
PLANE_NS: Final = 0.2
"""Any other one, whose layer reads the value again; a thermometer's are joined, too."""


class BinaryPlanes(Pass):
    """Puts quantizers that binary convolutions read into k planes of weights 1, 2, 4, ...

    Given::

        q = quantize(v; thresholds t0 < t1 < ..., values low + step * level)

    Result::

        q/level = how many of t0, t1, ... are <= v
        q/bit0, q/bit1, ... = bit_planes(q/level)
        q = offset + step / 2 * (q/bit0 + 2 * q/bit1 + ...)

    A convolution of q is then k binary convolutions, where a thermometer (passes/expand_planes.py)
    is one over as many channels as 2^k - 1. Levels that are computed already, as
    clamp(round(v), low, high), are taken as they are. A maximum of levels is none of their bits,
    so max-pooling moves above the quantizer.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for quantizers in _groups(graph):
            if not quantizers.pay(graph):
                continue
            for node, count in quantizers.members:
                moved = _after_pools(graph, node) if isinstance(node.op, Quantize) else node
                self._split(graph, moved, count)

    @staticmethod
    def _split(graph: Graph, node: Node, count: int) -> None:
        value = node.outputs[0]
        channels = graph.types[value].shape[2]
        planes = count.bit_length()
        level = fresh_value(graph, f"{value}/level")
        bits = [fresh_value(graph, f"{value}/bit{index}") for index in range(planes)]
        graph.origins |= {name: Level(value, index) for index, name in enumerate(bits)}
        op = node.op
        added = [replace(node, name=level, value=level)]
        if isinstance(op, Quantize):
            rows = op.thresholds.reshape(count, -1)
            each = np.broadcast_to(rows, (count, channels)).T
            added[0].op = Elementwise(Epilogue([Count(np.ascontiguousarray(each))]))
            low, high = float(op.values[0]), float(op.values[-1])
        else:
            low, high = _limits(node)
            whole = fresh_value(graph, f"{value}/whole")
            shift = ScaleBias(_full(channels, 1), _full(channels, -low))
            added = [replace(node, name=whole, value=whole)]
            step = Elementwise(Epilogue([shift]))
            added.append(replace(node, name=level, op=step, inputs=[whole], value=level))
        top = low + (high - low) / count * (2**planes - 1)
        split = replace(node, op=BitPlanes(planes), inputs=[level], value=None, planes=bits)
        split.name = f"{value}/bits"
        ends = np.full(channels, low, np.float64), np.full(channels, top, np.float64)
        total = replace(node, op=binary_sum(*ends, planes), inputs=bits)
        added += [split, total]
        replace_node(graph, node, *added)
        infer_added(graph, added)


def _full(channels: int, number: float) -> FloatArray:
    return np.full(channels, number, np.float32)


def _threshold_count(graph: Graph, node: Node) -> int | None:
    """Of a quantizer whose levels are evenly spaced and ascend; None if the node is none."""
    op = node.op
    if isinstance(op, Quantize):
        count = op.count if even_step(op.values) is not None else 0
    elif isinstance(_step(node), Clamp) and isinstance(
        _step(graph.producer(node.inputs[0])), Round
    ):
        low, high = _limits(node)
        whole = np.isfinite(high - low) and low == round(low) and high == round(high)
        count = int(high - low) if whole else 0
    else:
        return None
    return count if MIN_THRESHOLDS <= count < 2**MAX_BITS else None


def _step(node: Node) -> object:
    """The only step of an element-wise node, or None."""
    steps = node.op.epilogue.steps if isinstance(node.op, Elementwise) else []
    return steps[0] if len(steps) == 1 and len(node.inputs) == 1 else None


def _limits(node: Node) -> tuple[float, float]:
    step = _step(node)
    assert isinstance(step, Clamp)
    return step.low, step.high


@dataclass
class _Quantizers:
    """Quantizers whose values meet in convolutions, with their numbers of thresholds."""

    members: list[tuple[Node, int]]
    convolutions: dict[str, Node]

    def pay(self, graph: Graph) -> bool:
        """Whether binary planes are cheaper than the other form."""
        counts = {count for _, count in self.members}
        if len(counts) != 1:
            return False
        costs = [_costs(graph, node, *counts) for node in self.convolutions.values()]
        known = [cost for cost in costs if cost is not None]
        binary, other = np.sum(known, axis=0) if known else (0.0, 0.0)
        return len(known) == len(costs) and bool(binary < other)


def _groups(graph: Graph) -> list[_Quantizers]:
    groups: dict[int, _Quantizers] = {}
    reading: dict[str, _Quantizers] = {}  # by the names of convolutions
    for node in graph.nodes:
        count = _threshold_count(graph, node)
        if count is None:
            continue
        own = _Quantizers([(node, count)], _reading_convolutions(graph, node.outputs[0]))
        shared = [reading[name] for name in own.convolutions if name in reading]
        for group in {id(group): group for group in shared}.values():
            own.members = group.members + own.members
            own.convolutions |= group.convolutions
            del groups[id(group)]
        groups[id(own)] = own
        reading |= dict.fromkeys(own.convolutions, own)
    return list(groups.values())


def _costs(graph: Graph, node: Node, count: int) -> tuple[float, float] | None:
    """Of a convolution on binary planes, and on what else there is; None if it needs that."""
    op = node.op
    assert isinstance(op, Conv2D)
    factors = factor_weights(op.weights)
    if factors is None:
        return None
    if np.any(factors.beta) and op.groups != 1:
        factors = factors.without_beta()
    planes, arrays = count.bit_length(), len(factors.signs)
    taps, channels = int(np.prod(op.weights.shape[1:3])), op.weights.shape[3]
    if taps * channels * arrays * 2**planes >= LARGEST_SUM:
        return None
    outputs, inputs = (
        float(np.prod(graph.types[v].shape)) for v in (node.outputs[0], node.inputs[0])
    )
    sums, one = planes * arrays, _words(channels) * taps / BINARY_MACS
    packed = PACKED_NS if channels == _words(channels) else PLANE_NS
    binary = outputs * (sums * one + (sums - 1) * ADDED_NS) + inputs * packed * planes
    if count > MAX_PLANES:
        return binary, outputs * taps * channels / FLOAT_MACS
    if op.groups == 1 and not factors.has_units:
        other = outputs * _words(count * arrays * channels) * taps / BINARY_MACS
    else:
        other = outputs * count * arrays * (one + ADDED_NS)
    return binary, other + inputs * PLANE_NS * count


def _words(channels: int) -> int:
    """Channels, as many as fill the words of packed bits."""
    return -(-channels // 32) * 32


def _reading_convolutions(graph: Graph, value: str) -> dict[str, Node]:
    """Those after nodes that only arrange or rescale the value, by name."""
    found: dict[str, Node] = {}
    for reader in graph.consumers(value):
        if isinstance(reader.op, Conv2D):
            found[reader.outputs[0]] = reader
        elif _passes_on(reader.op) or is_per_channel(reader, graph.types[value].shape[2]):
            found |= _reading_convolutions(graph, reader.outputs[0])
    return found


def _passes_on(op: Operator) -> bool:
    return isinstance(op, MaxPool2D | Concat) or type(op).__name__ in ("Reshape", "Pad")


def _after_pools(graph: Graph, node: Node) -> Node:
    """Swaps the quantizer and the max-pooling that alone reads it; returns it where it is now."""
    value = node.outputs[0]
    pool = only_consumer(graph, value)
    if pool is None or not isinstance(pool.op, MaxPool2D):
        return node
    pooled = fresh_value(graph, f"{pool.outputs[0]}/unquantized")
    moved = replace(node, inputs=[pooled], value=pool.outputs[0])
    replace_node(graph, node)
    swapped = [replace(pool, inputs=list(node.inputs), value=pooled), moved]
    replace_node(graph, pool, *swapped)
    infer_added(graph, swapped)
    return _after_pools(graph, moved)
