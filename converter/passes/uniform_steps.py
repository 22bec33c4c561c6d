"""Quantizers of evenly spaced levels as arithmetic."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.epilogue import Clamp, EpilogueOp, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round
from phonebit.converter.passes.two_valued import RELATIVE_SPREAD

TIE: Final = 1e-6
"""Relative distance from a threshold at which float32 products round to either side."""
SHORT: Final = (1 << 10) - 1
VALUE_TOLERANCE: Final = 1e-6
"""A level computed as k * (1 / n) instead of k / n may differ by one rounding."""


def even_step(values: FloatArray) -> float | None:
    """What lies between neighbours of ascending, evenly spaced values; None of other values."""
    steps = np.diff(values.astype(np.float64))
    step = float(steps.mean())
    is_even = step > 0 and bool(np.all(np.abs(steps - step) <= RELATIVE_SPREAD * step))
    return step if is_even else None


def uniform_steps(
    thresholds: FloatArray,
    values: FloatArray,
    channels: int,
    slack: float = 0.0,
) -> list[EpilogueOp] | None:
    """A quantizer as clamp(round(scale * x + bias)) * step.

    Args:
        thresholds: Ascending, shape (n,).
        values: Shape (n + 1,), the lowest first.
        channels: Of the tensor.
        slack: Distance from a threshold, as a share of the range of levels, within which the level
            may be that on its other side; but not for numbers of few bits, which are no accident.

    Returns:
        Elementwise steps that take the same level as the quantizer for every float32, but for the
        slack; None if its levels are not such.
    """
    count = len(thresholds)
    step = (float(values[-1]) - float(values[0])) / count
    if step <= 0:
        return None
    first = round(float(values[0]) / step)
    integers = np.arange(first, first + count + 1)
    if not np.allclose(integers * step, values, rtol=VALUE_TOLERANCE, atol=VALUE_TOLERANCE * step):
        return None
    scale = (count - 1) / (float(thresholds[-1]) - float(thresholds[0]))
    exact = first + 0.5 - scale * float(thresholds[0])
    largest = max(abs(first), abs(first + count)) + 1
    # Halves are rounded to even: some units in the last place more make all of them go up.
    nudge = 4 * float(np.spacing(np.float32(largest))) if slack else 0.0
    distance = np.float32(slack * largest / scale)
    scales = dict.fromkeys(np.float32(n) for n in (scale, round(scale), 1 / step))
    for shift in dict.fromkeys((round(exact), exact, round(exact) + nudge, exact + nudge)):
        for factor in scales:
            bias = np.float32(shift)
            if _agrees(thresholds, factor, bias, first, distance):
                return _steps(thresholds, (factor, bias, step), first, channels)
    return None


def _steps(
    thresholds: FloatArray,
    numbers: tuple[np.float32, np.float32, float],
    first: int,
    channels: int,
) -> list[EpilogueOp]:
    scale, bias, step = numbers
    margin = 1 / float(scale)
    return [
        # Keeps the scale apart from one before it: merged, they might round to another level.
        Clamp(float(thresholds[0]) - margin, float(thresholds[-1]) + margin),
        ScaleBias(_full(scale, channels), _full(bias, channels)),
        Round(),
        Clamp(float(first), float(first + len(thresholds))),
        ScaleBias(_full(step, channels), _full(0, channels)),
    ]


def _agrees(
    thresholds: FloatArray,
    scale: np.float32,
    bias: np.float32,
    first: int,
    slack: np.float32,
) -> bool:
    """Whether the level changes between each threshold and the number below it: nowhere else."""
    before = np.nextafter(thresholds, np.float32(-np.inf))
    below = np.where(_is_short(before), before, before - slack)
    above = np.where(_is_short(thresholds), thresholds, thresholds + slack)
    levels = np.arange(first, first + len(thresholds))
    return bool(
        np.array_equal(np.rint(below * scale + bias), levels)
        and np.array_equal(np.rint(above * scale + bias), levels + 1)
    )


def _is_short(numbers: FloatArray) -> NDArray[np.bool_]:
    """Whether the last bits of each are 0: multiples of a scale that was chosen, not trained."""
    return np.asarray(numbers.view(np.int32) & SHORT == 0)


def _full(value: float | np.float32, channels: int) -> FloatArray:
    return np.full(channels, value, np.float32)
