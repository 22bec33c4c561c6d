"""Continuous functions of one number that consist of straight lines, in real arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.piecewise_functions import Part, Pieces, clamped, number_of

Numbers = NDArray[np.float64]

CANCELLED: Final = 1e-6
"""What is left of a difference of equal numbers, relative to them: constants are float32."""


@dataclass(frozen=True)
class Line:
    """slopes[i] * x + offsets[i] between knots[i - 1] and knots[i], which ascend."""

    knots: Numbers
    slopes: Numbers
    offsets: Numbers

    @classmethod
    def identity(cls) -> Line:
        """The number itself."""
        return cls(np.zeros(0), np.ones(1), np.zeros(1))

    def scaled(self, factor: float, shift: float = 0.0) -> Line:
        """``factor`` times the function, plus ``shift``."""
        return Line(self.knots, self.slopes * factor, self.offsets * factor + shift)

    def plus(self, other: Line) -> Line:
        """The sum of two functions."""
        knots = np.union1d(self.knots, other.knots)
        first, second = self._at(knots), other._at(knots)
        return Line(knots, first.slopes + second.slopes, first.offsets + second.offsets)

    def relu(self) -> Line:
        """max(f, 0)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = -self.offsets / self.slopes
        edges = np.concatenate([[-np.inf], self.knots, [np.inf]])
        inside = (roots > edges[:-1]) & (roots < edges[1:])
        line = self._at(np.union1d(self.knots, roots[inside]))
        middles = _middles(line.knots)
        above = line.slopes * middles + line.offsets > 0
        return Line(line.knots, line.slopes * above, line.offsets * above)

    def after(self, pieces: Pieces) -> Line | None:
        """A continuous function of pieces, of this one; None if its parts are no single numbers."""
        if any(part.factor.size != 1 for part in pieces.parts):
            return None
        numbers = [number_of(part.factor) for part in pieces.parts]
        slopes = [n if p.linear else 0.0 for n, p in zip(numbers, pieces.parts, strict=True)]
        total = self.scaled(slopes[0], 0.0 if pieces.parts[0].linear else numbers[0])
        changes = np.diff(slopes)
        for knot, change in zip(pieces.thresholds.astype(np.float64), changes, strict=True):
            total = total.plus(self.scaled(1, -knot).relu().scaled(change))
        return total

    def pieces(self) -> Pieces | None:
        """The clamp, or the two-sided PReLU, that it is; else None."""
        line = self._without_knots_that_turn_nothing()
        slopes, offsets = line.slopes, line.offsets
        flat, steep = slopes == 0, (slopes == 1) & (offsets == 0)
        if steep.sum() == 1 and len(slopes) > 1 and bool(np.all(flat | steep)):
            middle = int(np.argmax(steep))
            low, high = offsets[:middle], offsets[middle + 1 :]
            if len(low) <= 1 and len(high) <= 1:
                return clamped(*(float(side[0]) if side.size else None for side in (low, high)))
        if len(slopes) == 2 and line.knots[0] == 0 and not offsets.any() and slopes.any():
            parts = tuple(Part(True, np.full(1, slope, np.float32)) for slope in slopes)
            return Pieces(np.zeros(1, np.float32), parts)
        return None

    def _at(self, knots: Numbers) -> Line:
        """The same function with more knots."""
        part = np.searchsorted(self.knots, _middles(knots))
        return Line(knots, self.slopes[part], self.offsets[part])

    def _without_knots_that_turn_nothing(self) -> Line:
        """Rounded to what it is but for what cancellation left."""
        size = float(np.abs(np.concatenate([self.knots, self.offsets])).max(initial=0.0))
        slopes = np.where(np.abs(self.slopes) <= CANCELLED, 0, self.slopes)
        slopes = np.where(np.abs(slopes - 1) <= CANCELLED, 1, slopes)
        offsets = np.where(np.abs(self.offsets) <= CANCELLED * size, 0, self.offsets)
        turns = np.abs(np.diff(slopes)) > CANCELLED
        kept = np.concatenate([[True], turns])
        knots = np.where(np.abs(self.knots) <= CANCELLED * size, 0, self.knots)
        return Line(knots[turns], slopes[kept], offsets[kept])


def _middles(knots: Numbers) -> Numbers:
    """A number in each part."""
    if not knots.size:
        return np.zeros(1)
    return np.concatenate([[knots[0] - 1], (knots[:-1] + knots[1:]) / 2, [knots[-1] + 1]])
