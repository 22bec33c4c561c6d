"""What the bits of a file must be, from the values of its source.

The source has a sign, or an arrangement of bits, of the same name; or the file says what they are
(``phonebit.converter.origins``), and the source's own values and operators say what such bits must
be: so a wrong threshold shows at its layer, not after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import SMALLEST, Graph, Node, Shape, TensorType
from phonebit.converter.ops import Concat, MaxPool2D, Pad, Quantize, Reshape, Sign
from phonebit.converter.origins import Hoisted, Level, Origin, Plane, planes
from phonebit.format.records import DataType
from phonebit.verification.differences import Mask
from phonebit.verification.source_trace import Array, SourceTrace


@dataclass(frozen=True)
class Bits:
    """Bits as they should be.

    Attributes:
        values: int8 -1 and +1, (N, height, width, channels).
        margins: the float values whose signs they are, or None where there are none.
        zeros: where the source has 0 instead, or None if it cannot.
    """

    values: Array
    margins: Array | None
    zeros: Mask | None = None


class BitSource(Protocol):
    """Derives one tensor of bits.

    Attributes:
        reads: names of the source's values that it needs.
    """

    @property
    def reads(self) -> list[str]:
        """Names of the source's values that it needs."""

    def bits(self, trace: SourceTrace) -> Bits:
        """The bits for a trace that has these values."""


@dataclass(frozen=True)
class OwnBits:
    """Bits that the source has under the same name."""

    name: str

    @property
    def reads(self) -> list[str]:
        """See ``BitSource``."""
        return [self.name]

    def bits(self, trace: SourceTrace) -> Bits:
        """See ``BitSource``."""
        return Bits(trace.values[self.name], trace.margins.get(self.name))


@dataclass(frozen=True)
class PlaneBits:
    """Plane ``index`` of a value whose elements are levels of the quantizer ``op``.

    ``real`` is what the quantizer read, or None if ``value`` is an arrangement (a pooling, say) of
    its result. ``drops_zeros``: the file has no other plane although the quantizer has a level of
    its own, the middle one, for an exact zero.
    """

    value: str
    real: str | None
    op: Quantize
    index: int
    drops_zeros: bool

    @property
    def reads(self) -> list[str]:
        """See ``BitSource``."""
        return [self.value] if self.real is None else [self.value, self.real]

    def bits(self, trace: SourceTrace) -> Bits:
        """See ``BitSource``."""
        levels = trace.values[self.value]
        margins = None
        if self.real is not None:
            margins = trace.values[self.real] - self.op.thresholds[self.index]
        if _tells_level(self.op) or margins is None:
            # The level itself, not the real number, is what the source's next layer has read;
            # frameworks may have computed it with a rounding error (0.99999994 for 1).
            middle = (self.op.values[self.index] + self.op.values[self.index + 1]) / 2
            passed = levels > middle
        else:
            passed = margins >= 0
        values = np.where(passed, np.int8(1), np.int8(-1))
        return Bits(values, margins, levels == self.op.values[1] if self.drops_zeros else None)

    def counted(self, bits: Array) -> Array:
        """The quantized value, float32, where the only plane decides: without the middle level."""
        values: Array = np.where(bits > 0, self.op.values[-1], self.op.values[0])
        return values


@dataclass(frozen=True)
class LevelBits:
    """Bit ``index`` of the level that the quantizer ``op`` chose of ``real``, after ``pools``."""

    value: str
    real: str
    op: Quantize
    index: int
    pools: tuple[Node, ...]

    @property
    def reads(self) -> list[str]:
        """See ``BitSource``."""
        return [self.value, self.real]

    def bits(self, trace: SourceTrace) -> Bits:
        """See ``BitSource``; margins are distances from the nearest threshold."""
        real = trace.values[self.real]
        for pool in self.pools:
            real = evaluate_node(pool, [real])[pool.outputs[0]]
        middles = (self.op.values[:-1] + self.op.values[1:]) / 2
        levels = np.searchsorted(middles, trace.values[self.value])
        values = np.where(levels >> self.index & 1, np.int8(1), np.int8(-1))
        return Bits(values, self.op.borders(real))


@dataclass(frozen=True)
class MovedBits:
    """A sign in front of the layers that it follows in the source: ``chain`` applied to ``start``.

    The last node of ``chain`` is the sign. ``drops_zeros`` as in ``PlaneBits``.
    """

    start: str
    chain: list[Node]
    drops_zeros: bool

    @property
    def reads(self) -> list[str]:
        """See ``BitSource``."""
        return [self.start]

    def bits(self, trace: SourceTrace) -> Bits:
        """See ``BitSource``."""
        result = trace.values[self.start]
        margins: dict[str, Array] = {}
        for node in self.chain:
            result = evaluate_node(node, [result], margins)[node.outputs[0]]
        margin = margins[self.chain[-1].outputs[0]]
        return Bits(result, margin, margin == 0 if self.drops_zeros else None)


def bit_sources(
    source: Graph, shapes: Mapping[str, Shape], origins: Mapping[str, Origin]
) -> dict[str, BitSource]:
    """How the bits of a file follow from the source.

    Args:
        source: the source graph.
        shapes: (height, width, channels) of all tensors of bits in the file, by name.
        origins: what those are that the source does not name.

    Returns:
        What derives them, without those that nothing in the source stands for.
    """
    present = planes(origins)
    found = {
        name: _find(name, shape, source, origins.get(name), present)
        for name, shape in shapes.items()
    }
    return {name: bits for name, bits in found.items() if bits is not None}


def _find(
    name: str, shape: Shape, source: Graph, origin: Origin | None, present: set[Plane]
) -> BitSource | None:
    if name in source.types:
        same = source.types[name] == TensorType(shape, DataType.BIT)
        return OwnBits(name) if same else None
    if isinstance(origin, Hoisted):
        bits = _moved_bits(origin, source, present)
        return bits if bits is not None and source.types[bits.start].shape == shape else None
    if origin is None or origin.value not in source.types:
        return None
    if source.types[origin.value].shape != shape:
        return None
    op = _levels_of(origin.value, source)
    if op is None or origin.index >= op.count:
        return None
    node = source.producer(origin.value)
    if isinstance(origin, Level):
        return _level_bits(origin.value, source, origin.index)
    real = node.inputs[0] if isinstance(node.op, Quantize) else None
    if real is None and not _tells_level(op):
        return None
    drops_zeros = _drops_zeros(origin, op, present)
    return PlaneBits(origin.value, real, op, origin.index, drops_zeros)


def _level_bits(value: str, source: Graph, index: int) -> LevelBits | None:
    """As BinaryPlanes makes them: max-pooling moves above the quantizer."""
    pools: list[Node] = []
    node = source.producer(value)
    while isinstance(node.op, MaxPool2D):
        pools.insert(0, node)
        node = source.producer(node.inputs[0])
    if not isinstance(node.op, Quantize) or not _tells_level(node.op):
        return None
    return LevelBits(value, node.inputs[0], node.op, index, tuple(pools))


def _levels_of(value: str, source: Graph) -> Quantize | None:
    """The quantizer whose levels are the elements of ``value``, perhaps in another arrangement."""
    node = source.producer(value)
    if isinstance(node.op, Quantize):
        return node.op
    if not isinstance(node.op, MaxPool2D | Concat | Reshape):
        return None
    first, *others = (_levels_of(operand, source) for operand in node.inputs)
    same = first is not None and all(
        other is not None and np.array_equal(other.values, first.values) for other in others
    )
    return first if same else None


def _tells_level(op: Quantize) -> bool:
    """Whether a value of the quantizer says how many thresholds were passed."""
    return bool(np.all(np.diff(op.values) > 0))


def _drops_zeros(plane: Plane, op: Quantize, present: set[Plane]) -> bool:
    """Whether a plane is the only one, among those in the file, of a sign with sign(0)."""
    is_sign = op.thresholds.tolist() == [0, SMALLEST]
    return is_sign and Plane(plane.value, 1) not in present


def _moved_bits(moved: Hoisted, source: Graph, present: set[Plane]) -> MovedBits | None:
    found = _sign(moved.sign, source, present)
    if found is None:
        return None
    node, drops_zeros = found
    chain: list[Node] = []
    value = ""
    for index in moved.path:
        while not isinstance(node.op, MaxPool2D | Concat | Reshape | Pad):
            if len(node.inputs) != 1:
                return None
            chain.insert(0, node)
            node = source.producer(node.inputs[0])
        if index >= len(node.inputs):
            return None
        if isinstance(node.op, Concat):
            begin = sum(source.types[other].shape[2] for other in node.inputs[:index])
            part = slice(begin, begin + source.types[node.inputs[index]].shape[2])
            chain = [replace(step, op=step.op.sliced(part)) for step in chain]
        value = node.inputs[index]
        node = source.producer(value)
    return MovedBits(value, chain, drops_zeros)


def _sign(sign: str | Plane, source: Graph, present: set[Plane]) -> tuple[Node, bool] | None:
    """The sign of this name, or that of a quantizer's plane; and whether it drops exact zeros."""
    value = sign if isinstance(sign, str) else sign.value
    if value not in source.types:
        return None
    node = source.producer(value)
    if isinstance(sign, str):
        return (node, False) if isinstance(node.op, Sign) else None
    if not isinstance(node.op, Quantize) or sign.index >= node.op.count:
        return None
    if node.op.has_own_thresholds:
        return None
    made = replace(node, op=Sign(float(node.op.thresholds[sign.index])), value=f"{value}/plane")
    return made, _drops_zeros(sign, node.op, present)
