"""Quantizers of many evenly spaced levels, as arithmetic.

Planes of bits pay for a few levels; an 8-bit input quantizer has 256, and is rounded as it was
trained.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import View
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.piecewise_functions import Pieces
from phonebit.converter.importers.torch.pointwise import whole, write_step
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.epilogue import Clamp, EpilogueOp, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round

MANY_THRESHOLDS: Final = 16
"""From here on a quantizer is computed, not compared."""
VALUE_TOLERANCE: Final = 1e-6
"""A level computed as k * (1 / n) instead of k / n may differ by one rounding."""


def write_uniform(context: Context, call: Call, root: Value, pieces: Pieces) -> View | None:
    """Writes a quantizer of a tensor as arithmetic.

    Args:
        context: Receives the nodes.
        call: What the last of them is called after.
        root: What is rounded.
        pieces: The quantizer.

    Returns:
        None if it has not evenly spaced levels.
    """
    levels = pieces.levels()
    if levels is None or not pieces.thresholds.size:
        return None
    name = context.emission.inner_name(call, "quantize")
    view = whole(context, context.real(root), name)
    steps = uniform_steps(pieces.thresholds, float_array(levels), view.hwc[2])
    for step in (steps or [])[:-1]:
        view = write_step(context, view, step, f"{name}/step")
    return None if steps is None else write_step(context, view, steps[-1], name)


def uniform_steps(
    thresholds: FloatArray, values: FloatArray, channels: int
) -> list[EpilogueOp] | None:
    """A quantizer as clamp(round(scale * x + bias)) * step.

    Args:
        thresholds: Ascending, shape (n,).
        values: Shape (n + 1,), the lowest first.
        channels: Of the tensor.

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
        if _agrees(thresholds, candidate, bias, first):
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


def _agrees(thresholds: FloatArray, scale: np.float32, bias: np.float32, first: int) -> bool:
    """Whether the level changes between each threshold and the number below it: nowhere else."""
    below = np.nextafter(thresholds, np.float32(-np.inf))
    levels = np.arange(first, first + len(thresholds))
    return bool(
        np.array_equal(np.rint(below * scale + bias), levels)
        and np.array_equal(np.rint(thresholds * scale + bias), levels + 1)
    )


def _full(value: float | np.float32, channels: int) -> FloatArray:
    return np.full(channels, value, np.float32)
