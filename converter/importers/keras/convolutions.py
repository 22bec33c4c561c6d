"""Convolution and dense layers of Keras and Larq, as one function a layer kind."""

from __future__ import annotations

import numpy as np

from phonebit.converter.importers.keras.graph import (
    INPUT_QUANTIZER,
    LayerContext,
    Tensor,
    UnsupportedError,
    integers,
    needs_rank,
    number,
)
from phonebit.converter.importers.keras.pointwise import activate, is_linear
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import Conv2D


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
) -> tuple[Window, tuple[int, int]]:
    """The window of a convolution or pooling layer and the size of its output."""
    needs_rank(x, 3)
    height, width = x.shape[:2]
    if padding == "same":
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
    return window, size


def quantized_input(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """The layer's only input, through its input quantizer if it has one."""
    x = only(inputs)
    quantizer = ctx.quantizer("input_quantizer")
    x = ctx.real(x)
    if quantizer.step is None:
        return x
    return ctx.quantize(x, quantizer.step, suffix=INPUT_QUANTIZER, inner=INPUT_QUANTIZER)


def only(inputs: list[Tensor]) -> Tensor:
    """The single input of a layer."""
    if len(inputs) != 1:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected one")
    return inputs[0]


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


def _bias(ctx: LayerContext, channels: int) -> FloatArray | None:
    return ctx.weight("bias", (channels,)) if ctx.config.get("use_bias", True) else None


def _note_quantizers(ctx: LayerContext, kernel_quantizer: str, node: str) -> None:
    if not any(ctx.quantizer(key).is_none for key in (kernel_quantizer, "input_quantizer")):
        ctx.expected_binary.append(node)


def _pad_value(ctx: LayerContext) -> float:
    """What padded taps count as; matters to SAME padding only."""
    if ctx.config.get("padding") != "same":
        return 0.0
    return number(ctx.config.get("pad_values", 0.0), "pad_values")


def conv2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Conv2D and QuantConv2D."""
    x = only(inputs)
    kernel, strides = integers(ctx.config, "kernel_size", 2), integers(ctx.config, "strides", 2)
    dilation = integers(ctx.config, "dilation_rate", 2)
    window, size = sliding_window(ctx.config.get("padding", "valid"), x, kernel, strides, dilation)
    (filters,) = integers(ctx.config, "filters", 1, 0)
    (groups,) = integers(ctx.config, "groups", 1, 1)
    if x.channels % groups or filters % groups:
        raise UnsupportedError(
            f"groups={groups} does not divide in_channels={x.channels} and filters={filters}"
        )
    x = quantized_input(ctx, inputs)
    shape = (*kernel, x.channels // groups, filters)
    weights = ctx.kernel("kernel", shape, "kernel_quantizer").transpose(3, 0, 1, 2)
    _note_quantizers(ctx, "kernel_quantizer", ctx.name)
    bias = _bias(ctx, filters)
    op = Conv2D(contiguous(weights), window, groups, _pad_value(ctx), bias)
    return _finish(ctx, x, op, size)


def dense(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Dense and QuantDense: a 1x1 convolution over the last axis."""
    x = quantized_input(ctx, inputs)
    (units,) = integers(ctx.config, "units", 1, 0)
    kernel = ctx.kernel("kernel", (x.channels, units), "kernel_quantizer")
    _note_quantizers(ctx, "kernel_quantizer", ctx.name)
    weights = contiguous(kernel.transpose(1, 0)).reshape(units, 1, 1, x.channels)
    op = Conv2D(weights, Window((1, 1)), bias=_bias(ctx, units))
    return _finish(ctx, x, op, x.shape[:-1])


def _depthwise(ctx: LayerContext, x: Tensor, channels: int) -> tuple[Conv2D, tuple[int, int]]:
    """The depthwise part of a layer: (H, W, C, M) kernels, output channel c * M + m."""
    kernel, strides = integers(ctx.config, "kernel_size", 2), integers(ctx.config, "strides", 2)
    dilation = integers(ctx.config, "dilation_rate", 2)
    window, size = sliding_window(ctx.config.get("padding", "valid"), x, kernel, strides, dilation)
    (multiplier,) = integers(ctx.config, "depth_multiplier", 1, 1)
    shape = (*kernel, channels, multiplier)
    weights = ctx.kernel("depthwise_kernel", shape, "depthwise_quantizer").transpose(2, 3, 0, 1)
    weights = contiguous(weights).reshape(channels * multiplier, *kernel, 1)
    return Conv2D(weights, window, channels, _pad_value(ctx)), size


def depthwise_conv2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """DepthwiseConv2D and QuantDepthwiseConv2D."""
    needs_rank(only(inputs), 3)
    x = quantized_input(ctx, inputs)
    op, size = _depthwise(ctx, x, x.channels)
    op.bias = _bias(ctx, op.weights.shape[0])
    _note_quantizers(ctx, "depthwise_quantizer", ctx.name)
    return _finish(ctx, x, op, size)


def separable_conv2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """SeparableConv2D and QuantSeparableConv2D: depthwise, then 1x1; the bias comes last."""
    needs_rank(only(inputs), 3)
    x = quantized_input(ctx, inputs)
    op, size = _depthwise(ctx, x, x.channels)
    channels = op.weights.shape[0]
    _note_quantizers(ctx, "depthwise_quantizer", f"{ctx.name}/depthwise")
    x = ctx.emit(op, [x], (*size, channels), suffix="depthwise", inner="depthwise")
    (filters,) = integers(ctx.config, "filters", 1, 0)
    kernel = ctx.kernel("pointwise_kernel", (1, 1, channels, filters), "pointwise_quantizer")
    weights = contiguous(kernel.transpose(3, 0, 1, 2))
    return _finish(ctx, x, Conv2D(weights, Window((1, 1)), bias=_bias(ctx, filters)), size)
