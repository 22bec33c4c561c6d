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
LEAST_TAPS: Final = 9
"""Filters with fewer taps than this take few values by accident."""
MAX_WEIGHT_PLANES: Final = 3
"""Weights of 2 bits: four values."""


@dataclass(frozen=True)
class SignFactors:
    """Weights (Cout, ...) as alpha[o] * sum of ``signs`` + beta[o], up to ``RELATIVE_SPREAD``.

    ``signs`` are arrays of -1/+1 of the weights' shape, one less than a filter has values.
    """

    alpha: FloatArray
    signs: tuple[FloatArray, ...]
    beta: FloatArray


def factor_weights(weights: FloatArray) -> SignFactors | None:
    """The simplest form of weights that binary convolutions can serve.

    Tried in order: alpha * {-1, +1}; three or four evenly spaced values about 0, as a sum of sign
    arrays (ternary and 2-bit weights); any two values a filter, alpha * {-1, +1} + beta (AdaBin).

    Returns:
        None if a filter has more values.
    """
    scaled = split_scale(weights)
    none = np.zeros(len(weights), np.float32)
    if scaled is not None:
        return SignFactors(scaled[0], (scaled[1],), none)
    if weights[0].size < LEAST_TAPS:
        return None
    for planes in range(2, MAX_WEIGHT_PLANES + 1):
        found = _split_levels(weights, planes)
        if found is not None:
            return found
    return _split_shifted(weights)


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
    alpha = (largest[:, 0] / planes).astype(np.float32)
    return SignFactors(alpha, signs, np.zeros(len(weights), np.float32))


def _split_shifted(weights: FloatArray) -> SignFactors | None:
    """Two values a filter, not opposite: half their difference and their mean."""
    flat = weights.reshape(weights.shape[0], -1).astype(np.float64)
    low, high = flat.min(axis=1), flat.max(axis=1)
    above = flat > ((low + high) / 2)[:, None]
    nearest = np.where(above, high[:, None], low[:, None])
    spread = RELATIVE_SPREAD * np.maximum(np.abs(low), np.abs(high))
    if not np.all(np.abs(flat - nearest) <= spread[:, None]):
        return None
    signs = np.where(above, np.float32(1), np.float32(-1)).reshape(weights.shape)
    alpha, beta = (high - low) / 2, (high + low) / 2
    return SignFactors(alpha.astype(np.float32), (signs,), beta.astype(np.float32))


def all_ones(alpha: FloatArray) -> bool:
    """Whether scaling by ``alpha`` changes nothing."""
    return bool(np.all(alpha == 1))
