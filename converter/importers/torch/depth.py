"""Convolutions of three axes: one of two axes for each slice of the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, plain_view
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.layers import weighted
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Window
from phonebit.converter.ops import Concat, Conv2D


def depth_convolution(context: Context, call: Call) -> Value:
    """conv3d: the channels of each convolution are those of all slices under the kernel.

    Slices of padding are left out, so that binary kernels stay binary.

    Raises:
        UnsupportedError: It pads on one side only, or a whole slice of its result.
    """
    name, weights = (
        context.emission.name(call),
        float_array(context.constant(call["weight"], "kernel")),
    )
    strides, dilation = ([int(n) for n in call[key]] * 3 for key in ("stride", "dilation"))
    pads = _pads(call["padding"], weights.shape[2:], dilation)
    bias = None if call["bias"] is None else float_array(context.constant(call["bias"], "bias"))
    rows, columns = weights.shape[3:]
    sides = (pads[1], pads[2], pads[1], pads[2])
    window = Window((rows, columns), (strides[1], strides[2]), (dilation[1], dilation[2]), sides)
    view = context.real(context.operand(call["input"]))
    outputs, slices, height, width = call.shape[1:]
    values = []
    for place in range(slices):
        places = place * strides[0] - pads[0] + np.arange(weights.shape[2]) * dilation[0]
        inside = (places >= 0) & (places < view.indices.shape[2])
        if not inside.any():
            raise UnsupportedError("has slices that see nothing but padding")
        some = view.indices[:, :, places[inside]]
        some = some.reshape(len(some), -1, *some.shape[3:])
        part = relayout(
            context.emission, replace(view, indices=some), "channels_first", f"{name}/slices"
        )
        kernel = weights[:, :, inside].reshape(outputs, -1, *weights.shape[3:])
        kernel = np.ascontiguousarray(kernel.transpose(0, 2, 3, 1))
        op = Conv2D(kernel, window, int(call["groups"]), bias=bias)
        values.append(weighted(context, op, part, call["weight"], f"{name}/{place}"))
    value = values[0]
    if slices > 1:
        value = context.emission.emit(Concat(), values, (height, width, slices * outputs), name)
    shape = (context.batch, slices * outputs, height, width)
    result = plain_view(value, shape, context.batch, "channels_first")
    indices = result.indices.reshape(context.batch, slices, outputs, height, width).swapaxes(1, 2)
    return context.viewed(call, replace(result, indices=indices))


def _pads(padding: Any, kernel: tuple[int, ...], dilation: list[int]) -> list[int]:
    """Of each axis, the same on both sides."""
    if not isinstance(padding, str):
        return ([int(n) for n in padding] * 3)[:3]
    total = [
        (k - 1) * d if padding == "same" else 0 for k, d in zip(kernel, dilation, strict=False)
    ]
    if any(pad % 2 for pad in total):
        raise UnsupportedError("pads more after the map than before it")
    return [pad // 2 for pad in total]


DEPTH: Final = {"conv3d": depth_convolution}
"""Rules by the names of PyTorch's operators."""
