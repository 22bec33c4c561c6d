"""Recognition of weights that are a few numbers times -1/+1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

RELATIVE_SPREAD: Final = 1e-5
"""How much the magnitudes of one filter may differ: more than float32 arithmetic in a quantizer
causes (about 1e-6), less than any weights that were trained to differ."""
MIN_TAPS: Final = 9
"""Filters with fewer taps than this take few values by accident."""
EVEN_PLANES: Final = (2, 3)
"""Planes of weights of three or four evenly spaced values about 0."""
INTEGER_PLANES: Final = 4
"""Planes of such of five values: some of them, as -2, -1, 0, 1, need no sum of the window."""
MAX_VALUES: Final = 4
"""Values, of any size, that each filter may have."""


@dataclass(frozen=True)
class SignFactors:
    """Weights (Cout, ...) as alpha[o] * sum of units[j, o] * signs[j] + beta[o].

    That is up to ``RELATIVE_SPREAD``. ``signs`` are arrays of -1/+1 of the weights' shape, one less
    than a filter has values; ``units`` are 1 where the values are evenly spaced.
    """

    alpha: FloatArray
    signs: tuple[FloatArray, ...]
    beta: FloatArray
    units: FloatArray

    @property
    def has_units(self) -> bool:
        """Whether the sign arrays count differently."""
        return not all_ones(self.units)

    def without_beta(self) -> SignFactors:
        """The same with one more sign array, of +1, in place of beta."""
        ones, one = np.ones_like(self.signs[0]), np.ones_like(self.alpha)
        units = np.concatenate([self.alpha * self.units, self.beta[None]])
        return SignFactors(one, (*self.signs, ones), np.zeros_like(one), units)


def factor_weights(weights: FloatArray) -> SignFactors | None:
    """The simplest form of weights that binary convolutions can compute.

    Tried in order: alpha * {-1, +1}; three or four evenly spaced values about 0, as a sum of sign
    arrays (ternary and 2-bit weights); any two values per filter, alpha * {-1, +1} + beta (AdaBin);
    some of five evenly spaced values about 0 (INT2: -2 to 1); any three or four values per filter.

    Returns:
        None if a filter has more values.
    """
    scaled = split_scale(weights)
    if scaled is not None:
        return _factors(scaled[0], (scaled[1],))
    if weights[0].size < MIN_TAPS:
        return None
    for planes in EVEN_PLANES:
        found = _split_levels(weights, planes)
        if found is not None:
            return found
    return (
        _split_shifted(weights) or _split_levels(weights, INTEGER_PLANES) or _split_values(weights)
    )


def _factors(
    alpha: NDArray[np.floating],
    signs: tuple[FloatArray, ...],
    beta: NDArray[np.floating] | None = None,
) -> SignFactors:
    """Of sign arrays that count alike."""
    units = np.ones((len(signs), len(alpha)), np.float32)
    shift = np.zeros_like(alpha) if beta is None else beta
    return SignFactors(alpha.astype(np.float32), signs, shift.astype(np.float32), units)


def split_scale(weights: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Factors weights (Cout, ...) into a magnitude per filter and signs.

    Returns:
        (alpha of shape (Cout,), signs -1/+1 of the weights' shape) with weights = alpha * signs up
        to ``RELATIVE_SPREAD``; a filter of zeros has alpha 0. None if a filter is not two-valued.
    """
    flat = np.abs(weights.reshape(weights.shape[0], -1))
    largest, smallest = flat.max(axis=1), flat.min(axis=1)
    if not np.all(largest - smallest <= np.float32(RELATIVE_SPREAD) * largest):
        return None
    # Equal magnitudes are kept to the bit; a mean of them could round to a neighbour.
    alpha = largest.copy()
    uneven = largest != smallest
    alpha[uneven] = flat[uneven].mean(axis=1, dtype=np.float64)
    signs = np.where(weights >= 0, np.float32(1), np.float32(-1))
    return alpha, signs


def _split_levels(weights: FloatArray, planes: int) -> SignFactors | None:
    """Weights that take planes + 1 evenly spaced values from -m to m in each filter.

    w / m * planes is then one of -planes, -planes + 2, ... planes. As in a thermometer, sign array
    j is +1 from level j + 1 on, and w = m / planes * (sum of the arrays).
    """
    flat = weights.reshape(weights.shape[0], -1).astype(np.float64)
    largest = np.abs(flat).max(axis=1, keepdims=True)
    scaled = flat / np.where(largest > 0, largest, 1) * planes
    level = np.round((scaled + planes) / 2)
    if not np.all(np.abs(2 * level - planes - scaled) <= planes * RELATIVE_SPREAD):
        return None
    one = np.float32(1)
    signs = tuple(
        np.where(level > j, one, -one).reshape(weights.shape).astype(np.float32)
        for j in range(planes)
    )
    return _factors(largest[:, 0] / planes, signs)


def _split_shifted(weights: FloatArray) -> SignFactors | None:
    """Two values per filter, not opposite: half their difference and their mean."""
    flat = weights.reshape(weights.shape[0], -1).astype(np.float64)
    low, high = flat.min(axis=1), flat.max(axis=1)
    above = flat > ((low + high) / 2)[:, None]
    nearest = np.where(above, high[:, None], low[:, None])
    spread = RELATIVE_SPREAD * np.maximum(np.abs(low), np.abs(high))
    if not np.all(np.abs(flat - nearest) <= spread[:, None]):
        return None
    signs = np.where(above, np.float32(1), np.float32(-1)).reshape(weights.shape)
    return _factors((high - low) / 2, (signs,), (high + low) / 2)


def _split_values(weights: FloatArray) -> SignFactors | None:
    """Up to ``MAX_VALUES`` values per filter: sign array j is +1 from the value number j + 1 on.

    Unit j is half of what lies between two values, and beta the mean of the first and the last.
    """
    flat = weights.reshape(weights.shape[0], -1).astype(np.float64)
    spread = RELATIVE_SPREAD * np.abs(flat).max(axis=1, keepdims=True)
    ordered = np.sort(flat, axis=1)
    rises = np.diff(ordered, axis=1, prepend=ordered[:, :1]) > spread
    number = np.cumsum(rises, axis=1)
    if number.max() >= MAX_VALUES:
        return None
    values = np.stack([_last(ordered, number <= k) for k in range(MAX_VALUES)])
    if np.any(np.abs(ordered - np.take_along_axis(values.T, number, axis=1)) > spread):
        return None
    signs = tuple(
        np.where(flat > (values[k] + spread[:, 0])[:, None], np.float32(1), np.float32(-1)).reshape(
            weights.shape
        )
        for k in range(number.max())
    )
    units = np.diff(values, axis=0)[: number.max()] / 2
    beta = ((values[0] + values[-1]) / 2).astype(np.float32)
    alpha = np.ones(len(weights), np.float32)
    return SignFactors(alpha, signs, beta, units.astype(np.float32))


def _last(ordered: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The last of the chosen numbers of each row, which are its first ones."""
    found: NDArray[np.float64] = ordered[np.arange(len(ordered)), chosen.sum(axis=1) - 1]
    return found


def all_ones(alpha: FloatArray) -> bool:
    """Whether scaling by ``alpha`` changes nothing."""
    return bool(np.all(alpha == 1))
