"""Convolutions, linear layers, normalisations and softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import (
    Indices,
    UnsupportedError,
    View,
    distance,
    plain_view,
)
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.layout import flattened, relayout
from phonebit.converter.importers.torch.pointwise import with_channels, write
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import BatchNorm, Conv2D, Softmax

Tensor = Any
MAX_BINARY_VALUES: Final = 3
"""Different numbers in a filter of a binary kernel: two, and a 0 that sign(0) may have left."""


def convolution(context: Context, call: Call) -> Value:
    """conv1d, conv2d and the general convolution; kernels may be computed from parameters.

    Raises:
        UnsupportedError: It is three-dimensional, or its kernel depends on an input.
    """
    source = call["input"]
    weights = float_array(context.constant(call["weight"], "kernel"))
    axes = weights.ndim - 2
    if axes not in (1, 2) or len(source.shape) != weights.ndim:
        raise UnsupportedError(f"a kernel of shape {weights.shape} on an input {source.shape}")
    groups, name = int(call["groups"]), context.emission.name(call)
    view = context.real(context.operand(source))
    order = _channel_order(view)
    depthwise = groups == view.hwc[2] == len(weights)
    if order is None or not (groups == 1 or depthwise):
        view, order = relayout(context.emission, view, "channels_first", name), None
    elif depthwise:
        weights = _reordered(weights, order)
    else:
        weights, order = _reordered(weights.swapaxes(0, 1), order).swapaxes(0, 1), None
    if axes == 1:
        weights = weights[:, :, None, :]
    strides, dilation = pair_of(call["stride"], axes, 1), pair_of(call["dilation"], axes, 1)
    kernel = (weights.shape[2], weights.shape[3])
    pads = call["pads"] or _pads(call["padding"], axes, kernel, dilation)
    offset = None
    if call["bias"] is not None:
        offset = float_array(context.constant(call["bias"], "bias"))
        offset = offset if order is None else _reordered(offset, order)
    op = Conv2D(
        np.ascontiguousarray(weights.transpose(0, 2, 3, 1)),
        Window(kernel, strides, dilation, pads),
        groups,
        bias=offset,
    )
    value = weighted(context, op, view, call["weight"], name)
    result = plain_view(value, call.shape, context.batch, "channels_first")
    if order is not None:  # what comes out is shuffled alike
        result = replace(result, indices=result.indices[:, order])
    return context.viewed(call, result)


def _reordered(array: FloatArray, order: Indices) -> FloatArray:
    """PyTorch's channel c at the value's channel order[c]."""
    result = np.empty_like(array)
    result[order] = array
    return result


def _channel_order(view: View) -> Indices | None:
    """The channel of the value that each channel of a (N, C, ...) tensor is, if only they moved."""
    channels = view.hwc[2]
    sample = view.sample()
    if sample.ndim not in (2, 3) or sample.shape[0] != channels or not view.is_bijective():
        return None
    order: Indices = sample.reshape(channels, -1)[:, 0]
    if order.max() >= channels:
        return None
    plain = plain_view(view.value, view.indices.shape, view.batch, "channels_first")
    if plain.hwc != view.hwc or not np.array_equal(plain.sample()[order], sample):
        return None
    return order


def pair_of(value: Any, axes: int, default: int) -> tuple[int, int]:
    """An argument that PyTorch writes as one number, one an axis, or nothing."""
    values = [int(v) for v in value] if isinstance(value, list | tuple) else [int(value)]
    values = values or [default]
    values = values * axes if len(values) == 1 else values
    return (values[0], values[1]) if axes == 2 else (default, values[0])


def _pads(
    padding: Any, axes: int, kernel: tuple[int, int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    if padding == "valid":
        return 0, 0, 0, 0
    if padding == "same":  # what is left over goes after the map
        total = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
        top, left = total[0] // 2, total[1] // 2
        return top, left, total[0] - top, total[1] - left
    height, width = pair_of(padding, axes, 0)
    return height, width, height, width


def weighted(context: Context, op: Conv2D, view: View, weight: Call, name: str) -> str:
    """Writes a convolution, and notes whether it was trained to be binary."""
    size = op.window.output_size(view.hwc[0], view.hwc[1])
    value = context.emission.emit(op, [view.value], (*size, op.weights.shape[0]), name)
    if view.quantized and context.constants.is_quantized(weight) and _has_few_values(op.weights):
        context.expected_binary.append(value)
    return value


def _has_few_values(weights: FloatArray) -> bool:
    return all(
        np.unique(np.round(kernel / max(np.abs(kernel).max(), 1e-30), 5)).size <= MAX_BINARY_VALUES
        for kernel in weights
    )


def linear(context: Context, call: Call) -> Value:
    """linear, addmm, mm and matmul with a constant second factor.

    Raises:
        UnsupportedError: Both factors depend on an input, or the constant is the first one.
    """
    bias: Any = call["bias"]
    if call.op == "linear":
        source, factor = call["input"], call["weight"]
        weights = float_array(context.constant(factor, "weight"))
    else:
        source, factor = (
            (call["mat1"], call["mat2"])
            if call.op == "addmm"
            else (call["self"], call["mat2"] or call["other"])
        )
        weights = float_array(context.constant(factor, "second factor")).T
        if call.op == "addmm":
            bias = call["self"]
            if call["alpha"] != 1 or call["beta"] != 1:
                raise UnsupportedError("addmm with factors alpha or beta")
    if weights.ndim != 2:
        raise UnsupportedError(f"a weight of shape {weights.shape}; expected two axes")
    name = context.emission.name(call)
    view, weights = _features(context, context.real(context.operand(source)), weights, name)
    offset = None
    if bias is not None:
        offset = float_array(context.constant(bias, "bias")).reshape(-1)
        offset = np.ascontiguousarray(np.broadcast_to(offset, (len(weights),)))
    op = Conv2D(np.ascontiguousarray(weights[:, None, None, :]), Window((1, 1)), bias=offset)
    value = weighted(context, op, view, factor, name)
    return context.result(call, value, "channels_last")


def _features(
    context: Context, view: View, weights: FloatArray, name: str
) -> tuple[View, FloatArray]:
    """The input with its features as channels; their order is put into the weights."""
    sample = view.sample()
    if sample.ndim != 1 or not view.is_bijective():
        return relayout(context.emission, view, "channels_last", name), weights
    view = flattened(context.emission, view, name)
    arranged = np.empty_like(weights)
    arranged[:, view.sample()] = weights
    return view, arranged


def batch_norm(context: Context, call: Call) -> list[Any]:
    """Batch normalisation by stored statistics; the call returns three tensors.

    Raises:
        UnsupportedError: It has no stored statistics.
    """
    mean, variance = call["running_mean"], call["running_var"]
    if mean is None or variance is None or call["training"]:
        raise UnsupportedError(
            "normalises by the statistics of the batch; track_running_stats=True and eval() are "
            "needed"
        )
    name = context.emission.name(call)
    statistics = [context.constant(mean, "mean"), context.constant(variance, "variance")]
    scale, shift = call["weight"], call["bias"]
    ones = statistics[0] * 0 + 1
    tensors = [
        ones if scale is None else context.constant(scale, "weight"),
        ones * 0 if shift is None else context.constant(shift, "bias"),
        *statistics,
    ]
    source = context.real(context.operand(call["input"]))
    axes = (1,) * (source.indices.ndim - 2)
    along = [tensor.reshape(1, -1, *axes) for tensor in tensors]
    view, arrays = with_channels(context, source, along, name)
    gamma, beta, means, variances = arrays
    op = BatchNorm(gamma, beta, means, variances, float(call["eps"]), "torch")
    result = write(context, view, op, name, quantized=view.quantized)
    return [Value(call.shape, call.dtype, result), None, None]


def plain_batch_norm(context: Context, call: Call) -> Value:
    """The form that returns one tensor."""
    (value, *_) = batch_norm(context, call)
    return context.viewed(call, value.view)


def softmax(context: Context, call: Call) -> Value:
    """Both softmax and log_softmax, along any axis."""
    name, axis = context.emission.name(call), int(call["dim"]) % len(call.shape)
    view = context.real(context.operand(call["self"]))
    return context.viewed(call, softmax_along(context, view, axis, "log" in call.op, name))


def softmax_along(context: Context, view: View, axis: int, log: bool, name: str) -> View:
    """Softmax or its logarithm along an axis, which becomes the channels.

    Raises:
        UnsupportedError: It is along the batch.
    """
    sample, shape = view.sample(), view.indices.shape
    if axis < len(shape) - sample.ndim:
        raise UnsupportedError("is along the batch")
    single_pixel = view.hwc[:2] == (1, 1) and sample.size == max(sample.shape)
    if single_pixel and sample.size == shape[axis] and view.is_bijective():
        return write(context, view, Softmax(log=log), name)
    rest = [number for number in range(len(shape)) if number != axis]
    rest.sort(key=lambda number: distance(view.indices, number), reverse=True)
    lead = [shape[number] for number in rest if number >= len(shape) - sample.ndim]
    moved = view.indices.transpose(*rest, axis)
    flat = moved.reshape(view.batch, *((lead) if len(lead) == 2 else (-1,)), shape[axis])
    view = relayout(context.emission, replace(view, indices=flat), "channels_last", name)
    view = write(context, view, Softmax(log=log), name)
    back = np.argsort([*rest, axis])
    return replace(view, indices=view.indices.reshape(moved.shape).transpose(*back))


LAYERS: Final = {
    **dict.fromkeys(("conv1d", "conv2d"), convolution),
    **dict.fromkeys(("linear", "addmm"), linear),
    "batch_norm": plain_batch_norm,
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), batch_norm),
    "_native_batch_norm_legit_functional": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm,
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), softmax),
}
"""Rules by the names of PyTorch's operators."""
