"""Pooling, resizing and padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import (
    UnsupportedError,
    View,
    hwc_of,
    plain_view,
    without_batch,
)
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.pointwise import write
from phonebit.converter.importers.torch.rearranging import added, rearrange, rearranged
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Operator, Shape, Window
from phonebit.converter.ops import AveragePool2D, Conv2D, Divide, MaxPool2D, Pad, Reshape
from phonebit.converter.ops.resize_bicubic import ResizeBicubic
from phonebit.converter.ops.resize_bilinear import ResizeBilinear

Pair = tuple[int, int]


def max_pool(context: Context, call: Call) -> Any:
    """max_pool1d, max_pool2d and those that return indices, too."""
    view = _source(context, call)
    value = _pooled(context, call, MaxPool2D(_window(context, call, view)), view, view.quantized)
    return [value, None] if call.op.endswith("_with_indices") else value


def average_pool(context: Context, call: Call) -> Value:
    """avg_pool1d and avg_pool2d."""
    view = _source(context, call)
    window = _window(context, call, view)
    if call["divisor_override"]:
        return _divided_sum(context, call, view, window, float(call["divisor_override"]))
    top, left, bottom, right = window.pads
    if (top or left) and call["count_include_pad"] is not False:
        # Padded zeros count, so they must be part of the map; what ceil_mode adds does not count.
        pads = (top, left, top, left)
        view = _padded(context, view, pads, 0.0, f"{context.emission.name(call)}/pad")
        window = replace(window, pads=(0, 0, bottom - top, right - left))
    return _pooled(context, call, AveragePool2D(window), view)


def resize(context: Context, call: Call) -> Value:
    """upsample_bilinear2d and upsample_bicubic2d.

    Raises:
        UnsupportedError: Its scale factor is not the ratio of the sizes, which PyTorch then takes
            for the distance of the output's pixels.
    """
    view = _source(context, call)
    height, width, _ = hwc_of(without_batch(call.shape, context.batch), "channels_first")
    factors = call["scale_factors"] or [call["scales_h"], call["scales_w"]]
    for factor, old, new in zip(factors, view.hwc, (height, width), strict=False):
        if factor is not None and not call["align_corners"] and old * float(factor) != new:
            raise UnsupportedError(
                f"scale_factor={factor} makes {new} of {old} pixels; give size= instead"
            )
    op = ResizeBicubic if "bicubic" in call.op else ResizeBilinear
    return _pooled(context, call, op((height, width), bool(call["align_corners"])), view)


def sum_of_windows(view: View, window: Window) -> Conv2D:
    """A kernel of ones for each channel."""
    channels = view.hwc[2]
    return Conv2D(np.ones((channels, *window.kernel, 1), np.float32), window, channels)


def pad(context: Context, call: Call) -> Any:
    """constant_pad_nd and pad: pixels get a Pad, channels of zeros are only noted.

    Raises:
        UnsupportedError: It crops and pads with a constant at once, or more than three axes.
    """
    amounts = [int(amount) for amount in call["pad"]]
    constant = call["mode"] in (None, "constant")
    number = float(call["value"] or 0.0)
    source = context.operand(call["self"])
    view = context.real(source)
    spatial = 2 * (view.sample().ndim - 1)
    if not constant or min(amounts) < 0:
        if constant and number != 0:
            raise UnsupportedError("crops and pads with a constant at once")
        return rearrange(context, call)
    if any(amounts[spatial:]):
        inner = {**call.arguments, "pad": [0] * spatial + amounts[spatial:]}
        constant = call.apply({**inner, "self": np.zeros(view.indices.shape, np.float32)})
        view = context.real(rearranged(context, call, inner))
        view = added(context, view, constant, f"{context.emission.name(call)}/channels")
    if not any(amounts[:spatial]):
        return context.viewed(call, view)
    if any(amounts[6:spatial]):
        raise UnsupportedError("pads more than three axes besides the channels")
    columns, rows, slices = _pairs(amounts[:spatial])
    name = context.emission.name(call)
    sizes = view.sample().shape[1:]
    view = relayout(context.emission, view, "channels_first", name)
    if len(sizes) == 3:  # slices lie below each other: rows are padded with slices as the height
        depth, height, width = sizes
        if any(rows):
            flat = (depth, height, width * view.hwc[2])
            flat_view = _reshaped(context, view, flat, name)
            view = _padded(context, flat_view, (0, rows[0], 0, rows[1]), number, f"{name}/rows")
            height += sum(rows)
            view = _reshaped(context, view, (depth * height, width, call.shape[1]), name)
        rows = (slices[0] * height, slices[1] * height)
    pads = (rows[0], columns[0], rows[1], columns[1])
    padded = _padded(context, view, pads, number, name) if any(pads) else view
    return context.result(call, padded.value, "channels_first", quantized=view.quantized)


def _pairs(amounts: list[int]) -> list[tuple[int, int]]:
    """What is padded in front of the last axis and after it, then of those before it."""
    wide = [*amounts, 0, 0, 0, 0, 0, 0]
    return [(wide[at], wide[at + 1]) for at in (0, 2, 4)]


def _reshaped(context: Context, view: View, hwc: Shape, name: str) -> View:
    value = context.emission.emit(Reshape(hwc), [view.value], hwc, f"{name}/reshape")
    shape = (view.batch, hwc[2], *hwc[:2])
    return plain_view(value, shape, view.batch, "channels_first")


def _source(context: Context, call: Call) -> View:
    view = context.real(context.operand(call["self"] or call["input"]))
    return relayout(context.emission, view, "channels_first", context.emission.name(call))


def _pooled(
    context: Context, call: Call, op: Operator, view: View, quantized: bool = False
) -> Value:
    hwc = hwc_of(without_batch(call.shape, context.batch), "channels_first")
    value = context.emission.emit(op, [view.value], hwc, context.emission.name(call))
    return context.result(call, value, "channels_first", quantized=quantized)


def _padded(
    context: Context, view: View, pads: tuple[int, int, int, int], number: float, name: str
) -> View:
    height, width, channels = view.hwc
    hwc = (height + pads[0] + pads[2], width + pads[1] + pads[3], channels)
    value = context.emission.emit(Pad(pads, number), [view.value], hwc, name)
    return plain_view(value, (view.batch, channels, *hwc[:2]), view.batch, "channels_first")


def _divided_sum(context: Context, call: Call, view: View, window: Window, divisor: float) -> Value:
    hwc = hwc_of(without_batch(call.shape, context.batch), "channels_first")
    name = context.emission.name(call)
    op = sum_of_windows(view, window)
    total = context.emission.emit(op, [view.value], hwc, f"{name}/sum")
    result = plain_view(total, call.shape, context.batch, "channels_first")
    divide = Divide(np.full(hwc[2], divisor, np.float32))
    return context.viewed(call, write(context, result, divide, name))


def _window(context: Context, call: Call, view: View) -> Window:
    """The window that makes the result as large as PyTorch's, ceil_mode included."""
    one = call.op.startswith(("max_pool1d", "avg_pool1d"))
    kernel = _pair(call["kernel_size"], one, (1, 1))
    strides = _pair(call["stride"], one, kernel)
    top, left = _pair(call["padding"], one, (0, 0))
    dilation = _pair(call["dilation"], one, (1, 1))
    height, width, _ = hwc_of(without_batch(call.shape, context.batch), "channels_first")
    reach = [
        (outputs - 1) * strides[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        for axis, outputs in enumerate((height, width))
    ]
    if call["pads"] is not None:  # of a framework that has them for each side
        return Window(kernel, strides, dilation, call["pads"])
    bottom, right = reach[0] - view.hwc[0] - top, reach[1] - view.hwc[1] - left
    return Window(kernel, strides, dilation, (top, left, max(top, bottom), max(left, right)))


def _pair(value: Any, one: bool, default: Pair) -> Pair:
    """(height, width) of an argument that may be a number, one an axis, empty or missing."""
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not values:
        return default
    return (default[0], int(values[0])) if one else (int(values[0]), int(values[-1]))


POOLING: Final = {
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool2d_with_indices"), max_pool),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d"), average_pool),
    **dict.fromkeys(("upsample_bilinear2d", "upsample_bicubic2d"), resize),
    **dict.fromkeys(("pad", "constant_pad_nd"), pad),
}
"""Rules by the names of PyTorch's operators."""
