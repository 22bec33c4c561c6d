"""Functions of one tensor that are a constant or a multiple of it between thresholds.

Signs, quantizers, ReLUs, PReLUs and what authors write for them (masks, sums of masks, products
with masks, ``where``) all have this form. The rules keep it only where float32 arithmetic does: a
multiple is rounded once, so it can be multiplied again by powers of two only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import FloatArray

Tensor = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """``factor`` times the input if ``linear``, else ``factor``; shape (1,) or of parameters."""

    linear: bool
    factor: Tensor

    def is_one(self) -> bool:
        """Whether it is the input itself."""
        return self.linear and bool((self.factor == 1).all())

    def is_zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return not self.linear and bool((self.factor == 0).all())


@dataclass(frozen=True)
class Pieces:
    """Part i holds where i thresholds are <= the input; thresholds ascend, shape (n,)."""

    thresholds: FloatArray
    parts: tuple[Part, ...]

    def levels(self) -> Tensor | None:
        """The values, shape (n + 1,), if all parts are single constants."""
        if any(part.linear or part.factor.size != 1 for part in self.parts):
            return None
        return np.concatenate([part.factor.reshape(1) for part in self.parts])

    def evaluate(self, x: Tensor) -> Tensor:
        """The results for a one-dimensional array, of parts with single numbers."""
        place = np.searchsorted(self.thresholds, x, side="right")
        results = [part.factor * x if part.linear else part.factor for part in self.parts]
        return np.choose(place, results)


def number_of(constant: Any) -> float:
    """A number, or the only element of an array."""
    return float(np.asarray(constant).item())


def identity() -> Pieces:
    """The input itself."""
    return Pieces(np.zeros(0, np.float32), (Part(True, _one(1)),))


def from_levels(thresholds: FloatArray, values: Tensor) -> Pieces:
    """A step function."""
    return _merged(thresholds, [Part(False, values[i : i + 1]) for i in range(len(values))])


def clamped(low: float | None, high: float | None) -> Pieces:
    """min(max(x, low), high)."""
    thresholds, parts = [], [Part(True, _one(1))]
    if low is not None:
        thresholds.append(low)
        parts.insert(0, Part(False, _one(low)))
    if high is not None:
        thresholds.append(high)
        parts.append(Part(False, _one(high)))
    return Pieces(np.array(thresholds, np.float32), tuple(parts))


def two_slopes(negative: Tensor) -> Pieces:
    """``negative`` * x below 0, x from there on."""
    return Pieces(np.zeros(1, np.float32), (Part(True, negative), Part(True, _one(1))))


def _one(number: float) -> Tensor:
    return np.full(1, number, np.float32)


def mirrored(pieces: Pieces) -> Pieces:
    """f(-x) of a continuous f, for which it is the same on which side a threshold lies."""
    thresholds = -pieces.thresholds[::-1]
    parts = [Part(p.linear, -p.factor if p.linear else p.factor) for p in pieces.parts[::-1]]
    return Pieces(thresholds + np.float32(0), tuple(parts))


def combined(
    rule: Callable[[Sequence[Part]], Part | None], operands: Sequence[Pieces | Part]
) -> Pieces | None:
    """Pieces of an operation on several functions of the same input.

    Args:
        rule: What it makes of one part of each; None if that is no part.
        operands: Functions of the input, or constants as single parts.
    """
    own = [operand.thresholds for operand in operands if isinstance(operand, Pieces)]
    thresholds = np.unique(np.concatenate(own)) if own else np.zeros(0, np.float32)
    parts = []
    for start in (-np.inf, *thresholds):
        chosen = [
            operand.parts[int(np.sum(operand.thresholds <= start))]
            if isinstance(operand, Pieces)
            else operand
            for operand in operands
        ]
        part = rule(chosen)
        if part is None:
            return None
        parts.append(part)
    return _merged(thresholds, parts)


def _merged(thresholds: FloatArray, parts: Sequence[Part]) -> Pieces:
    """Without thresholds at which nothing changes."""
    kept, result = [], [parts[0]]
    for threshold, part in zip(thresholds, parts[1:], strict=True):
        last = result[-1]
        same = last.linear == part.linear and last.factor.shape == part.factor.shape
        if not (same and bool((last.factor == part.factor).all())):
            kept.append(threshold)
            result.append(part)
    return Pieces(np.array(kept, np.float32), tuple(result))


def part_rule(
    op: str, function: Callable[[Sequence[Tensor]], Tensor]
) -> Callable[[Sequence[Part]], Part | None]:
    """What an operator makes of parts.

    Args:
        op: Name of the operator; "cast" is one to float32.
        function: The operator itself, on constants.
    """

    def rule(parts: Sequence[Part]) -> Part | None:
        if not any(part.linear for part in parts):
            return Part(False, function([part.factor for part in parts]))
        if op == "where":
            return _chosen(parts)
        if op == "neg":
            return Part(True, -parts[0].factor)
        if op == "mul":
            return _product(parts[0], parts[1])
        if op == "div":
            return _quotient(parts[0], parts[1])
        if op in ("add", "sub", "rsub"):
            first, second = parts if op != "rsub" else parts[::-1]
            return _sum(first, second, negate=op != "add")
        if op == "cast":
            return parts[0]
        return None

    return rule


def _chosen(parts: Sequence[Part]) -> Part | None:
    condition, first, second = parts
    if condition.linear or condition.factor.size != 1:
        return None
    return first if bool(condition.factor) else second


def _product(first: Part, second: Part) -> Part | None:
    if first.linear and second.linear:
        return None
    linear, constant = (first, second) if first.linear else (second, first)
    if constant.is_zero():
        return Part(False, constant.factor.astype(linear.factor.dtype))
    factors = linear.factor, constant.factor.astype(linear.factor.dtype)
    if any(_only_scales_exactly(factor) for factor in factors):
        return Part(True, factors[0] * factors[1])
    return None


def _quotient(first: Part, second: Part) -> Part | None:
    if second.linear or not _only_scales_exactly(second.factor) or (second.factor == 0).any():
        return None
    return _product(first, Part(False, 1 / second.factor))


def _only_scales_exactly(factor: Tensor) -> bool:
    """Whether all factors are 0 or powers of two: multiplying by them rounds nothing."""
    mantissa = np.frexp(np.abs(factor))[0]
    return bool(((mantissa == 0.5) | (factor == 0)).all())


def _sum(first: Part, second: Part, *, negate: bool) -> Part | None:
    if second.is_zero():
        return first
    if first.is_zero():
        return Part(second.linear, -second.factor) if negate else second
    return None
