"""Recognition of weights that are one number times -1/+1."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

RELATIVE_SPREAD: Final = 1e-5
"""How much the magnitudes of one filter may differ: more than float32 arithmetic in a quantizer
causes (about 1e-6), less than any weights that were trained to differ."""


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


def all_ones(alpha: FloatArray) -> bool:
    """Whether scaling by ``alpha`` changes nothing."""
    return bool(np.all(alpha == 1))
