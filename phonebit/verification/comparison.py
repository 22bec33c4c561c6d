"""How one result is judged: float values within a tolerance, bits equal but for ties and zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.verification.differences import Kind, Mask
from phonebit.verification.layer_check import LayerCheck
from phonebit.verification.rounding import Rounding

Array = NDArray[Any]

TIE_LIMIT = 1e-5
"""A bit may differ where the compared value is below this share of the layer's largest value."""
TIE_SHARE = 1e-3
"""More ties and zeros than this share of a layer's bits (and than TIE_COUNT) are no accident."""
TIE_COUNT = 16
LOWER_PRECISION_LIMIT = 0.1
"""Float values of a layer that runs in the lower precision that was asked for may differ by this
share of the layer's largest, and bits where the compared value is below it."""


def compare_reals(
    check: LayerCheck,
    result: Array,
    expected: Array,
    tolerance: float,
    origin: tuple[str, int],
    is_lower: bool = False,
    rounding: Rounding | None = None,
) -> None:
    """Find the largest difference of float values.

    Args:
        check: receives it.
        result: the engine's values, (N, height, width, channels).
        expected: what they should be.
        tolerance: allowed difference, as a share of the largest expected value.
        origin: name of the value and number of the batch's first sample.
        is_lower: whether the layer runs in a lower precision, as asked for.
        rounding: the layer's rounding to integers, if it has one.
    """
    largest = float(np.abs(expected).max())
    allowed = (max(tolerance, LOWER_PRECISION_LIMIT) if is_lower else tolerance) * largest
    difference = np.abs(result.astype(np.float64) - expected)
    worst = float(difference.max())
    check.values += result.size
    check.tolerance = max(check.tolerance, allowed)
    if not worst <= check.max_abs_difference:
        check.max_abs_difference = worst
        check.worst = _place_text(origin, int(np.argmax(difference)), difference.shape)
    wrong: Mask = ~(difference <= allowed)  # a NaN parts too
    ties = np.zeros_like(wrong)
    if rounding is not None and wrong.any():
        ties = wrong & rounding.ties(result, expected, TIE_LIMIT, allowed)
        wrong = wrong & ~ties
        check.ties += int(np.count_nonzero(ties))
        if ties.any():
            check.worst_tie = max(check.worst_tie, float(rounding.distance[ties].max()))
    check.wrong_values += int(np.count_nonzero(wrong))
    if is_lower:
        check.lower += int(np.count_nonzero(difference > tolerance * largest))
    check.differences.add(origin, expected, result, {"wrong": wrong, "float tie": ties})
    check.mismatch |= bool(wrong.any()) or _too_many(check)


def compare_bits(
    check: LayerCheck,
    result: Array,
    expected: Array,
    margin: Array | None,
    origin: tuple[str, int],
    zeros: Mask | None = None,
    is_lower: bool = False,
) -> None:
    """Count bits that differ, and those among them that are float ties or exact zeros.

    Args:
        check: receives the counts.
        result: the engine's -1 and +1, (N, height, width, channels).
        expected: what they should be.
        margin: the float values whose signs ``expected`` is, or None if it is integer arithmetic.
        origin: name of the value and number of the batch's first sample.
        zeros: where the source's own value is 0 instead of -1 or +1; None: nowhere.
        is_lower: whether the layer runs in a lower precision, as asked for.
    """
    zeros = np.zeros(result.shape, np.bool_) if zeros is None else zeros
    differs = (result != expected) & ~zeros
    near = np.zeros_like(differs) if margin is None else tie_mask(margin)
    lower = np.zeros_like(differs)
    if is_lower and margin is not None:
        lower = differs & ~near & tie_mask(margin, LOWER_PRECISION_LIMIT)
        check.lower += int(np.count_nonzero(lower))
    ties, wrong = differs & near, differs & ~near & ~lower
    tie_count, zero_count = int(np.count_nonzero(ties)), int(np.count_nonzero(zeros))
    check.bits += result.size
    check.differing_bits += int(np.count_nonzero(differs)) + zero_count
    check.ties += tie_count
    check.zeros += zero_count
    if tie_count and margin is not None:
        check.worst_tie = max(check.worst_tie, float(np.abs(margin[ties]).max()))
    if wrong.any() and not check.worst_bit:
        check.worst_bit = _place_text(origin, int(np.argmax(wrong)), wrong.shape)
    shown = np.where(zeros, result.dtype.type(0), expected)
    masks: dict[Kind, Mask] = {"wrong": wrong, "float tie": ties, "exact zero": zeros}
    if is_lower:
        masks["lower precision"] = lower
    check.differences.add(origin, shown, result, masks, margin)
    check.mismatch |= (_too_many(check) and not is_lower) or bool(wrong.any())


def _too_many(check: LayerCheck) -> bool:
    """Whether there are more ties and zeros than an accident explains."""
    compared = check.bits + check.values
    return check.ties + check.zeros > max(TIE_COUNT, TIE_SHARE * compared)


def tie_mask(margin: Array, share: float = TIE_LIMIT) -> Mask:
    """Where a float value is so near to zero that rounding decides its sign.

    Args:
        margin: the float values.
        share: of the largest of them, up to which rounding may decide: by default what the order of
            float additions can do.
    """
    magnitude = np.abs(margin)
    limit = share * float(magnitude.max(initial=0.0))
    return np.asarray(magnitude <= limit)


def unequal(result: Array, other: Array) -> int:
    """Elements that differ between two devices; a NaN equals a NaN."""
    differs = (result != other) & ~((result != result) & (other != other))
    return int(np.count_nonzero(differs))


def _place_text(origin: tuple[str, int], index: int, shape: tuple[int, ...]) -> str:
    """``name[sample, row, column, channel]``."""
    sample, *rest = np.unravel_index(index, shape)
    where = ", ".join(str(int(i)) for i in (sample + origin[1], *rest))
    return f"{origin[0]}[{where}]"
