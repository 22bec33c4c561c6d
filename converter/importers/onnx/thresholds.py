"""MultiThreshold as a quantizer of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.pointwise import whole, with_channels, write, write_step
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.importers.torch.uniform_quantizers import MANY_THRESHOLDS
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Quantize, Sign
from phonebit.converter.ops.epilogue.count import MAX_COUNTED
from phonebit.converter.passes.uniform_steps import TIE, even_step, uniform_steps


def multi_threshold(context: Context, call: Call) -> Value:
    """A quantizer whose thresholds are the same for all channels, or each channel's own.

    Raises:
        UnsupportedError: It has more thresholds than planes can express.
    """
    rows = np.sort(np.array(context.constant(call["thresholds"], "thresholds"), np.float32), axis=1)
    name = context.emission.inner_name(call, "quantize")
    view = whole(context, context.real(context.operand(call["self"])), name)
    count = rows.shape[1]
    numbers = np.arange(count + 1, dtype=np.float32)
    values = np.float32(call["scale"]) * numbers + np.float32(call["bias"])
    if bool((rows == rows[0]).all()):
        common = _common(context, view, rows[0], values, name)
        if common is not None:
            return context.viewed(call, common)
    if count > MAX_COUNTED or (count >= MANY_THRESHOLDS and even_step(values) is None):
        maximum = MAX_COUNTED if even_step(values) is not None else MANY_THRESHOLDS - 1
        raise UnsupportedError(
            f"has {count} thresholds for each channel; expected at most {maximum}"
        )
    axes = [1] * len(call.shape)
    axes[int(call["axis"])] = len(rows)
    along = [column.reshape(axes) for column in rows.T]
    view, columns = with_channels(context, view, along, name)
    op = Quantize(np.stack(columns), values)
    return context.viewed(call, write(context, view, op, name, quantized=True))


def _common(
    context: Context, view: View, thresholds: FloatArray, values: FloatArray, name: str
) -> View | None:
    """None where levels are many, and neither arithmetic."""
    ascending, counts = np.unique(thresholds, return_counts=True)
    levels = values[np.concatenate([[0], np.cumsum(counts)])]
    if ascending.size == 1 and levels[0] == -1 and levels[1] == 1:
        return write(context, view, Sign(float(ascending[0])), name, quantized=True)
    if ascending.size < MANY_THRESHOLDS:
        return write(context, view, Quantize(ascending, levels), name, quantized=True)
    steps: Any = uniform_steps(ascending, levels, view.hwc[2], TIE)
    if steps is None:
        return None
    for step in steps[:-1]:
        view = write_step(context, view, step, f"{name}/step")
    return write_step(context, view, steps[-1], name)
