"""Quantizers of evenly spaced levels as arithmetic."""

from __future__ import annotations

from typing import Final

import numpy as np

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.epilogue import Clamp, EpilogueOp, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round

VALUE_TOLERANCE: Final = 1e-6
"""A level computed as k * (1 / n) instead of k / n may differ by one rounding."""


def uniform_steps(
    thresholds: FloatArray, values: FloatArray, channels: int, slack: float = 0.0
) -> list[EpilogueOp] | None:
    """A quantizer as clamp(round(scale * x + bias)) * step.

    Args:
        thresholds: Ascending, shape (n,).
        values: Shape (n + 1,), the lowest first.
        channels: Of the tensor.
        slack: Relative distance from a threshold within which the level may be the next one.

    Returns:
        Elementwise steps that take the same level as the quantizer for every float32; None if its
        levels are not such.
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
    bias = np.float32(round(first + 0.5 - scale * float(thresholds[0])))
    for candidate in dict.fromkeys((np.float32(scale), np.float32(round(scale)))):
        if _agrees(thresholds, candidate, bias, first, slack):
            break
    else:
        return None
    margin = 1 / scale
    return [
        # Keeps the scale apart from one before it: merged, they might round to another level.
        Clamp(float(thresholds[0]) - margin, float(thresholds[-1]) + margin),
        ScaleBias(_full(candidate, channels), _full(bias, channels)),
        Round(),
        Clamp(float(first), float(first + count)),
        ScaleBias(_full(step, channels), _full(0, channels)),
    ]


def _agrees(
    thresholds: FloatArray, scale: np.float32, bias: np.float32, first: int, slack: float
) -> bool:
    """Whether the level changes between each threshold and the number below it: nowhere else."""
    distance = np.float32(slack) * np.abs(thresholds).max()
    below = np.nextafter(thresholds - distance, np.float32(-np.inf))
    thresholds = thresholds + distance
    levels = np.arange(first, first + len(thresholds))
    return bool(
        np.array_equal(np.rint(below * scale + bias), levels)
        and np.array_equal(np.rint(thresholds * scale + bias), levels + 1)
    )


def _full(value: float | np.float32, channels: int) -> FloatArray:
    return np.full(channels, value, np.float32)
