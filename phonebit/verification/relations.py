"""Values of a layer and of the source: a factor and an offset for each channel between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.verification.comparison import TIE_LIMIT
from phonebit.verification.source_trace import Array

FAR: Final = 1e3
"""How far from a threshold its sides are asked, in units of the layer's largest value."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Relation:
    """A layer's values v and those of the source: slope * v + offset in each channel.

    Attributes:
        place: which of the chain's values these are.
        values: the source's, (N, height, width, channels).
        predicted: what they should be by the layer's, likewise.
        slope: (channels,); so are the other two.
        is_known: whether the inputs tell.
    """

    place: int
    values: Array
    predicted: Numbers
    slope: Numbers
    offset: Numbers
    is_known: NDArray[np.bool_]

    @property
    def largest(self) -> float:
        """Largest magnitude of the source's values."""
        return float(np.abs(self.values).max(initial=0.0))

    @property
    def error(self) -> float:
        """Largest difference, as a share of the largest value."""
        difference = np.abs(self.predicted - self.values).max(initial=0.0)
        return float(difference / max(self.largest, np.finfo(np.float32).tiny))


def related(got: Array, candidates: Sequence[Array], tolerance: float) -> Relation:
    """The first of the source's values that fits, or the one that fits best."""
    best: Relation | None = None
    for place, values in enumerate(candidates):
        found = _fitted(got, values, place, tolerance)
        if best is None or found.error < best.error:
            best = found
        if best.error <= tolerance:
            break
    assert best is not None
    return best


def _fitted(got: Array, values: Array, place: int, tolerance: float) -> Relation:
    """By least squares, where the values are not simply the same or opposite."""
    x, y = (array.reshape(-1, got.shape[3]).astype(np.float64) for array in (got, values))
    middle = x.mean(axis=0), y.mean(axis=0)
    dx, dy = x - middle[0], y - middle[1]
    spread = (dx * dx).sum(axis=0)
    is_known = spread > 0
    slope = np.where(is_known, (dx * dy).sum(axis=0) / np.where(is_known, spread, 1), 0)
    sign = np.where(slope < 0, -1.0, 1.0)
    allowed = tolerance * np.abs(y).max(initial=0.0)
    is_same = np.abs(sign * x - y).max(axis=0, initial=0.0) <= allowed
    slope = np.where(is_same, sign, slope)
    offset = np.where(is_same, 0.0, middle[1] - slope * middle[0])
    is_known &= slope != 0
    predicted = (x * slope + offset).reshape(got.shape)
    return Relation(place, values, predicted, slope, offset, is_known)


def near_of(found: Relation, border: Numbers) -> Numbers:
    """How far from a number of the source's the sides of a threshold are asked, at least."""
    return 2 * TIE_LIMIT * (found.largest + np.abs(border))
