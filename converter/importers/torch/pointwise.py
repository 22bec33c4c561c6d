"""Writes nodes that treat every element, or every channel, alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.jumps import keys_of
from phonebit.converter.importers.torch.layout import flattened, relayout, some_channels
from phonebit.converter.importers.torch.piecewise_functions import Pieces, number_of
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import SMALLEST, FloatArray, Operator
from phonebit.converter.ops import Elementwise, Quantize, Sign
from phonebit.converter.ops.epilogue import Clamp, Epilogue, EpilogueOp, PRelu, ScaleBias

Tensor = NDArray[Any]
ZERO_THRESHOLDS: Final = (0.0, SMALLEST)


def whole(context: Context, view: View, name: str) -> View:
    """A view that has every element of its value once, so that elements can be treated alike."""
    if view.is_bijective():
        return view
    return some_channels(context.emission, view, name) or relayout(
        context.emission, view, "channels_first", name
    )


def write(
    context: Context, view: View, op: Operator, name: str, *others: str, quantized: bool = False
) -> View:
    """Appends a node whose result has its operand's shape; the arrangement stays the same."""
    value = context.emission.emit(op, [view.value, *others], view.hwc, name)
    return view.with_value(value, quantized=quantized)


def write_step(
    context: Context, view: View, step: EpilogueOp, name: str, *others: str, quantized: bool = False
) -> View:
    """Appends an element-wise node of one step."""
    op = Elementwise(Epilogue([step]))
    return write(context, view, op, name, *others, quantized=quantized)


def affine(context: Context, view: View, scale: Tensor, bias: Tensor, name: str) -> View:
    """Scales and shifts a tensor, which stays quantized if it was.

    Args:
        context: Receives the nodes.
        view: The tensor.
        scale: Broadcasts to the tensor's shape, or has one element.
        bias: Likewise.
        name: What the node is called.
    """
    quantized = view.quantized
    view, (scales, biases) = with_channels(context, view, [scale, bias], name)
    return write_step(context, view, ScaleBias(scales, biases), name, quantized=quantized)


def with_channels(
    context: Context, view: View, tensors: Sequence[Tensor], name: str
) -> tuple[View, list[FloatArray]]:
    """Constants as one number for each channel of a view's value.

    Args:
        context: Receives a Reshape if the constants vary within channels.
        view: The tensor that the constants meet.
        tensors: Shapes that broadcast to the view's, or one element.
        name: The node's that they are for.

    Returns:
        The view, perhaps of a flattened value, and float32 arrays of shape (channels,).
    """
    view = whole(context, view, name)
    arrays = [_per_channel(view, tensor) for tensor in tensors]
    if any(array is None for array in arrays):
        view = flattened(context.emission, view, name)
        arrays = [_per_channel(view, tensor) for tensor in tensors]
    return view, [array for array in arrays if array is not None]


def _per_channel(view: View, tensor: Tensor) -> FloatArray | None:
    values = float_array(tensor)
    channels = view.hwc[2]
    if values.size == 1:
        return np.full(channels, values.reshape(-1)[0], np.float32)
    try:
        everywhere = np.broadcast_to(values, view.indices.shape)
    except ValueError as error:
        got = f"{view.indices.shape} and {values.shape}"
        raise UnsupportedError(f"a constant makes the tensor larger: shapes {got}") from error
    flat = np.empty(view.batch * view.elements, np.float32)
    flat[view.indices.reshape(-1)] = everywhere.reshape(-1)
    pixels = flat.reshape(-1, channels)
    return pixels[0].copy() if bool(np.all(pixels == pixels[0])) else None


def write_pieces(context: Context, call: Call, root: Value, pieces: Pieces) -> View | None:
    """Writes a function of one tensor as one node, if there is an operator for it.

    Args:
        context: Receives the nodes.
        call: What the node is called after.
        root: The tensor.
        pieces: The function.

    Returns:
        None if no operator has these pieces.
    """
    name = context.emission.name(call)
    levels = pieces.levels()
    if levels is not None and pieces.thresholds.size:
        return _quantizer(context, call, root, pieces.thresholds, float_array(levels))
    if levels is not None:
        return _constant(context, call, root, float(levels[0]))
    if len(pieces.parts) == 1:
        return context.real(root) if pieces.parts[0].is_one() else None
    limits = _limits(pieces)
    if limits is not None:
        view = whole(context, context.real(root), name)
        return write_step(context, view, Clamp(*limits), name)
    return _slopes(context, name, root, pieces)


def _constant(context: Context, call: Call, root: Value, level: float) -> View:
    """A function that has one value only: the sign of what a ReLU gives, by mistake."""
    name = context.emission.name(call)
    context.notes.append(f"{name}: is {level:g} whatever the image (a ReLU in front of a sign?)")
    view = whole(context, context.real(root), name)
    if abs(level) != 1:
        return write_step(context, view, ScaleBias(*_filled(view, 0, level)), name)
    limits = (0.0, float("inf")) if level > 0 else (float("-inf"), -1.0)
    view = write_step(context, view, Clamp(*limits), f"{name}/limited")
    return write(context, view, Sign(), name, quantized=True)


def _filled(view: View, *numbers: float) -> list[FloatArray]:
    return [np.full(view.hwc[2], number, np.float32) for number in numbers]


def _quantizer(
    context: Context, call: Call, root: Value, thresholds: FloatArray, values: FloatArray
) -> View:
    """Sign for -1/+1, else Quantize; a level of exactly one number becomes that of exact zeros."""
    is_sign = values[0] == -1 and values[-1] == 1
    name = context.emission.inner_name(call, "sign" if is_sign else "quantize")
    view = whole(context, context.real(root), name)
    if thresholds.size == 1 and is_sign:
        return write(context, view, Sign(float(thresholds[0])), name, quantized=True)
    lower, upper = keys_of(thresholds)[[0, -1]]
    if thresholds.size == 2 and upper == lower + 1 and lower != 0:
        # v - t is exact next to t, and 0 at t only.
        channels = view.hwc[2]
        shift = ScaleBias(np.ones(channels, np.float32), np.full(channels, -thresholds[0]))
        view = write_step(context, view, shift, f"{name}/shift")
        thresholds = np.array(ZERO_THRESHOLDS, np.float32)
    return write(context, view, Quantize(thresholds, values), name, quantized=True)


def _limits(pieces: Pieces) -> tuple[float, float] | None:
    """Of a clamp: a constant, the input, a constant, joined without a jump; one may be missing."""
    parts, limits = list(pieces.parts), [-np.inf, np.inf]
    for side, position in ((0, 0), (1, -1)):
        part = parts[position]
        if part.linear or part.factor.size != 1:
            continue
        limits[side] = number_of(part.factor)
        threshold = pieces.thresholds[[position]]
        if keys_of(threshold)[0] - keys_of(np.array([limits[side]]))[0] not in (0, 1):
            return None
        parts.pop(position)
    return (limits[0], limits[1]) if len(parts) == 1 and parts[0].is_one() else None


def _slopes(context: Context, name: str, root: Value, pieces: Pieces) -> View | None:
    """PReLU: a multiple below 0 and another above."""
    if len(pieces.parts) != 2 or float(pieces.thresholds[0]) not in ZERO_THRESHOLDS:
        return None
    if any(not part.linear and not part.is_zero() for part in pieces.parts):
        return None
    factors = [part.factor if part.linear else np.zeros(1, np.float32) for part in pieces.parts]
    view, (slope, positive) = with_channels(context, context.real(root), factors, name)
    step = PRelu(slope, None if np.all(positive == 1) else positive)
    return write_step(context, view, step, name)
