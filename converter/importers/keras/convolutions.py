"""Convolution and dense layers of Keras and Larq, as one function per kind of layer."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from phonebit.converter.importers.keras.graph import (
    INPUT_QUANTIZER,
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
    integers,
    needs_rank,
    number,
)
from phonebit.converter.importers.keras.pointwise import activate, is_linear
from phonebit.converter.importers.keras.shared import by_calls
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import Conv2D

FOLDED: Final = ("QConv2DBatchnorm", "QDepthwiseConv2DBatchnorm")
"""QKeras's layers with a batch normalisation inside, and what that is called."""
NORM: Final = "batchnorm"
STATISTICS: Final = (
    ("gamma", "scale", 1.0),
    ("beta", "center", 0.0),
    ("moving_mean", "", 0.0),
    ("moving_variance", "", 1.0),
)


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """TensorFlow's SAME rule on one axis: output ceil(size / stride), the odd pixel goes last."""
    span = (kernel - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def sliding_window(
    padding: object,
    x: Tensor,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...] = (1, 1),
) -> tuple[Window, tuple[int, ...]]:
    """The window of a convolution or pooling layer and the size of its output.

    Along one axis the window is one row high, and so is the map.
    """
    axes = len(kernel)
    needs_rank(x, axes + 1)
    height, width = x.hwc[:2]
    kernel, strides, dilation = ((1, *each)[-2:] for each in (kernel, strides, dilation))
    if padding == "causal" and axes == 1:
        top, left, bottom, right = 0, (kernel[1] - 1) * dilation[1], 0, 0
    elif padding == "same":
        top, bottom = same_padding(height, kernel[0], strides[0], dilation[0])
        left, right = same_padding(width, kernel[1], strides[1], dilation[1])
    elif padding == "valid":
        top = left = bottom = right = 0
    else:
        raise UnsupportedError(f"padding={padding!r}; only 'same' and 'valid' are supported")
    window = Window(
        (kernel[0], kernel[1]),
        (strides[0], strides[1]),
        (dilation[0], dilation[1]),
        (top, left, bottom, right),
    )
    size = window.output_size(height, width)
    if min(size) < 1:
        raise UnsupportedError(f"its {kernel} window does not fit the {x.shape} input")
    return window, size[-axes:]


def quantized_input(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """The layer's only input, through its input quantizer if it has one."""
    x = only(inputs)
    quantizer = ctx.quantizer("input_quantizer")
    x = ctx.real(x)
    if quantizer.calls is not None:
        suffix = INPUT_QUANTIZER
        return by_calls(quantizer.calls, ctx, [x], suffix=suffix, inner=suffix)[0]
    if quantizer.step is None:
        return x
    return ctx.quantize(x, quantizer.step, suffix=INPUT_QUANTIZER, inner=INPUT_QUANTIZER)


def only(inputs: list[Tensor]) -> Tensor:
    """The single input of a layer."""
    if len(inputs) != 1:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected one")
    return inputs[0]


def _as_map(kernel: FloatArray) -> FloatArray:
    """A kernel of one axis or two as one of two."""
    return kernel if kernel.ndim == 4 else kernel[None]


def contiguous(weights: FloatArray) -> FloatArray:
    """``weights`` in memory order, but views of one zero as they are (see NoWeights)."""
    return np.ascontiguousarray(weights) if any(weights.strides) else weights


def _finish(ctx: LayerContext, x: Tensor, op: Conv2D, size: tuple[int, ...]) -> Tensor:
    """Emits the layer's main node and its activation argument."""
    value = ctx.config.get("activation")
    shape = (*size, op.weights.shape[0])
    if is_linear(value):
        return ctx.emit(op, [x], shape)
    x = ctx.emit(op, [x], shape, inner="preactivation")
    return activate(ctx, x, value, "activation")


def kernel_of(ctx: LayerContext, role: str, shape: tuple[int, ...], quantizer: str) -> FloatArray:
    """A kernel after its quantizer; QKeras's folded layers scale it by their statistics before."""
    weight = ctx.weight(role, shape)
    if ctx.layer.class_name in FOLDED:
        last = 2 if role.startswith("depthwise") else 1
        scale, _ = _folded(ctx, math.prod(shape[-last:]))
        weight = weight * scale.reshape(shape[-last:])
    return ctx.quantized(weight, role, quantizer)


def bias_of(ctx: LayerContext, channels: int) -> FloatArray | None:
    """The layer's bias, if it has one, after its quantizer."""
    has_bias = ctx.config.get("use_bias", True)
    bias = ctx.weight("bias", (channels,)) if has_bias else None
    if ctx.layer.class_name in FOLDED:
        scale, shift = _folded(ctx, channels)
        bias = shift if bias is None else shift + scale * bias
    return None if bias is None else ctx.quantized_bias(bias)


def _folded(ctx: LayerContext, channels: int) -> tuple[FloatArray, FloatArray]:
    """The scale and shift that the batch normalisation inside a layer is."""
    gamma, beta, mean, variance = (
        ctx.weight(f"{NORM}/{role}", (channels,))
        if ctx.config.get(flag, True)
        else constant(default, channels)
        for role, flag, default in STATISTICS
    )
    epsilon = np.float32(number(ctx.config.get("epsilon", 1e-3), "epsilon"))
    scale = gamma / np.sqrt(variance + epsilon)
    return scale, beta - scale * mean


def note_quantizers(ctx: LayerContext, kernel_quantizer: str, node: str) -> None:
    """Notes a node as expected to become binary, if both of its quantizers are there."""
    if not any(ctx.quantizer(key).is_none for key in (kernel_quantizer, "input_quantizer")):
        ctx.expected_binary.append(node)


def pad_value(ctx: LayerContext) -> float:
    """What padded taps count as; matters to SAME padding only."""
    if ctx.config.get("padding") != "same":
        return 0.0
    return number(ctx.config.get("pad_values", 0.0), "pad_values")


def _window(
    ctx: LayerContext, x: Tensor, axes: int
) -> tuple[tuple[int, ...], Window, tuple[int, ...]]:
    """The kernel's size as Keras has it, the window, and the size of the output."""
    kernel, strides, dilation = (
        integers(ctx.config, key, axes) for key in ("kernel_size", "strides", "dilation_rate")
    )
    padding = ctx.config.get("padding", "valid")
    return kernel, *sliding_window(padding, x, kernel, strides, dilation)


def conv(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Conv1D, Conv2D and Larq's."""
    x = only(inputs)
    kernel, window, size = _window(ctx, x, axes)
    (filters,) = integers(ctx.config, "filters", 1, 0)
    (groups,) = integers(ctx.config, "groups", 1, 1)
    if x.channels % groups or filters % groups:
        raise UnsupportedError(
            f"groups={groups} does not divide in_channels={x.channels} and filters={filters}"
        )
    x = quantized_input(ctx, inputs)
    shape = (*kernel, x.channels // groups, filters)
    weights = _as_map(kernel_of(ctx, "kernel", shape, "kernel_quantizer")).transpose(3, 0, 1, 2)
    note_quantizers(ctx, "kernel_quantizer", ctx.name)
    bias = bias_of(ctx, filters)
    op = Conv2D(contiguous(weights), window, groups, pad_value(ctx), bias)
    return _finish(ctx, x, op, size)


def dense(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Dense and QuantDense: a 1x1 convolution over the last axis."""
    x = quantized_input(ctx, inputs)
    (units,) = integers(ctx.config, "units", 1, 0)
    kernel = kernel_of(ctx, "kernel", (x.channels, units), "kernel_quantizer")
    note_quantizers(ctx, "kernel_quantizer", ctx.name)
    weights = contiguous(kernel.transpose(1, 0)).reshape(units, 1, 1, x.channels)
    op = Conv2D(weights, Window((1, 1)), bias=bias_of(ctx, units))
    return _finish(ctx, x, op, x.shape[:-1])


def _depthwise(ctx: LayerContext, x: Tensor, axes: int) -> tuple[Conv2D, tuple[int, ...]]:
    """The depthwise part of a layer: (H, W, C, M) kernels, output channel c * M + m."""
    kernel, window, size = _window(ctx, x, axes)
    (multiplier,) = integers(ctx.config, "depth_multiplier", 1, 1)
    shape = (*kernel, x.channels, multiplier)
    weights = _as_map(kernel_of(ctx, "depthwise_kernel", shape, "depthwise_quantizer"))
    weights = contiguous(weights.transpose(2, 3, 0, 1))
    weights = weights.reshape(x.channels * multiplier, *window.kernel, 1)
    return Conv2D(weights, window, x.channels, pad_value(ctx)), size


def depthwise_conv(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """DepthwiseConv1D, DepthwiseConv2D and Larq's."""
    x = quantized_input(ctx, inputs)
    op, size = _depthwise(ctx, x, axes)
    op.bias = bias_of(ctx, op.weights.shape[0])
    note_quantizers(ctx, "depthwise_quantizer", ctx.name)
    return _finish(ctx, x, op, size)


def separable_conv(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """SeparableConv1D, SeparableConv2D and Larq's: depthwise, then 1x1; the bias comes last."""
    x = quantized_input(ctx, inputs)
    op, size = _depthwise(ctx, x, axes)
    channels = op.weights.shape[0]
    if not is_linear(ctx.config.get("depthwise_activation")):
        raise UnsupportedError("depthwise_activation is not supported")
    note_quantizers(ctx, "depthwise_quantizer", f"{ctx.name}/depthwise")
    x = ctx.emit(op, [x], (*size, channels), suffix="depthwise", inner="depthwise")
    (filters,) = integers(ctx.config, "filters", 1, 0)
    shape = (*[1] * axes, channels, filters)
    kernel = _as_map(kernel_of(ctx, "pointwise_kernel", shape, "pointwise_quantizer"))
    weights = contiguous(kernel.transpose(3, 0, 1, 2))
    return _finish(ctx, x, Conv2D(weights, Window((1, 1)), bias=bias_of(ctx, filters)), size)
