"""The registry of Keras layer classes, and those that are neither convolutions nor functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.convolutions import (
    conv2d,
    dense,
    depthwise_conv2d,
    only,
    separable_conv2d,
    sliding_window,
)
from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
    integers,
    needs_rank,
    number,
)
from phonebit.converter.importers.keras.merging import add, concatenate, multiply, subtract
from phonebit.converter.importers.keras.pointwise import (
    activate,
    element_function,
    is_linear,
    leaky_relu,
    prelu_slope,
    quantizer,
    relu,
    softmax,
)
from phonebit.converter.importers.keras.quantizers import LARQ_NAMES
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import AveragePool2D, BatchNorm, Dequantize, MaxPool2D, Pad, Reshape
from phonebit.converter.ops.epilogue import PRelu, ScaleBias
from phonebit.converter.ops.resize_bilinear import ResizeBilinear
from phonebit.format.records import DataType

LayerFunction = Callable[[LayerContext, list[Tensor]], Tensor]


def batch_normalization(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """BatchNormalization over the last axis, with its moving statistics."""
    x = ctx.real(only(inputs))
    axis = ctx.config.get("axis", -1)
    axes = axis if isinstance(axis, list) else [axis]
    if axes not in ([-1], [len(x.shape)]):
        raise UnsupportedError(f"axis={axis}; only the last axis (channels_last) is supported")
    size = (x.channels,)
    gamma = ctx.weight("gamma", size) if ctx.config.get("scale", True) else constant(1, *size)
    beta = ctx.weight("beta", size) if ctx.config.get("center", True) else constant(0, *size)
    mean, variance = ctx.weight("moving_mean", size), ctx.weight("moving_variance", size)
    epsilon = number(ctx.config.get("epsilon", 1e-3), "epsilon")
    if not np.all(variance + np.float32(epsilon) > 0):
        raise UnsupportedError("its moving variance plus epsilon is not positive")
    return ctx.emit(BatchNorm(gamma, beta, mean, variance, epsilon), [x], x.shape)


def _pool_window(ctx: LayerContext, x: Tensor) -> tuple[Window, tuple[int, ...]]:
    kernel = integers(ctx.config, "pool_size", 2, 2)
    strides = integers(ctx.config, "strides", 2) if ctx.config.get("strides") else kernel
    window, size = sliding_window(ctx.config.get("padding", "valid"), x, kernel, strides)
    return window, (*size, x.channels)


def max_pooling2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """MaxPooling2D; on bits it stays bits."""
    x = ctx.real(only(inputs))
    window, shape = _pool_window(ctx, x)
    return ctx.emit(MaxPool2D(window), [x], shape, dtype=x.dtype)


def average_pooling2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """AveragePooling2D; padded taps do not count."""
    x = ctx.real(only(inputs))
    window, shape = _pool_window(ctx, x)
    return ctx.emit(AveragePool2D(window), [x], shape)


def _global_shape(ctx: LayerContext, x: Tensor) -> tuple[int, ...]:
    needs_rank(x, 3)
    return (1, 1, x.channels) if ctx.config.get("keepdims") else (x.channels,)


def global_average_pooling2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """GlobalAveragePooling2D: a window as large as the map."""
    x = ctx.real(only(inputs))
    shape = _global_shape(ctx, x)
    return ctx.emit(AveragePool2D(Window((x.shape[0], x.shape[1]))), [x], shape)


def global_max_pooling2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """GlobalMaxPooling2D: a window as large as the map."""
    x = ctx.real(only(inputs))
    shape = _global_shape(ctx, x)
    return ctx.emit(MaxPool2D(Window((x.shape[0], x.shape[1]))), [x], shape, dtype=x.dtype)


def flatten(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Flatten, in (height, width, channel) order."""
    x = only(inputs)
    total = math.prod(x.shape)
    return ctx.emit(Reshape((1, 1, total)), [x], (total,), dtype=x.dtype)


def reshape(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Reshape to one, two or three axes; one of them may be -1."""
    return reshape_to(ctx, only(inputs), ctx.config.get("target_shape"))


def reshape_to(ctx: LayerContext, x: Tensor, target: Any) -> Tensor:
    """Emits a reshape to the Keras shape ``target`` (without the batch)."""
    total = math.prod(x.shape)
    if not isinstance(target, list | tuple) or not all(isinstance(n, int) for n in target):
        raise UnsupportedError(f"target_shape={target!r} is not a list of integers")
    if not 1 <= len(target) <= 3:
        raise UnsupportedError(f"target_shape={tuple(target)}; only 1 to 3 axes are supported")
    known = math.prod(n for n in target if n != -1)
    if list(target).count(-1) == 1 and known > 0 and total % known == 0:
        target = [total // known if n == -1 else n for n in target]
    if math.prod(target) != total or min(target) < 1:
        raise UnsupportedError(f"target_shape={tuple(target)} does not fit an input of {x.shape}")
    result = Tensor(x.value, tuple(target))
    return ctx.emit(Reshape(result.hwc), [x], result.shape, dtype=x.dtype)


def zero_padding2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """ZeroPadding2D."""
    x = ctx.real(only(inputs))
    needs_rank(x, 3)
    padding = ctx.config.get("padding", 1)
    pair = [padding, padding] if isinstance(padding, int) else padding
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise UnsupportedError(f"padding={padding!r}")
    sides = [[side, side] if isinstance(side, int) else list(side) for side in pair]
    flat = [n for side in sides for n in side]
    if len(flat) != 4 or not all(isinstance(n, int) and 0 <= n < 1 << 16 for n in flat):
        raise UnsupportedError(f"padding={padding!r}")
    top, bottom, left, right = flat
    height, width, channels = x.shape
    shape = (height + top + bottom, width + left + right, channels)
    return ctx.emit(Pad((top, left, bottom, right), 0.0), [x], shape)


def up_sampling2d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """UpSampling2D by bilinear interpolation."""
    x = ctx.real(only(inputs))
    needs_rank(x, 3)
    size, method = ctx.config.get("size", 2), ctx.config.get("interpolation", "nearest")
    if method != "bilinear":
        raise UnsupportedError(f"interpolation={method!r}; only 'bilinear' is supported")
    factors = (size, size) if isinstance(size, int) else tuple(size or ())
    if len(factors) != 2 or not all(isinstance(n, int) and 1 <= n <= 1 << 10 for n in factors):
        raise UnsupportedError(f"size={size!r}")
    height, width, channels = x.shape
    shape = (height * factors[0], width * factors[1], channels)
    return ctx.emit(ResizeBilinear(shape[:2]), [x], shape)


def activation(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """The Activation layer."""
    x, value = ctx.real(only(inputs)), ctx.config.get("activation")
    return x if is_linear(value) else activate(ctx, x, value, "")


def activation_layer(function: Any) -> LayerFunction:
    """A layer that is an activation function with parameters."""

    def emit(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
        result: Tensor = function(ctx, ctx.real(only(inputs)), ctx.config, "")
        return result

    return emit


def prelu(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """PReLU; axes in ``shared_axes`` (1 is the first after the batch) share their slopes."""
    x = ctx.real(only(inputs))
    shared = ctx.config.get("shared_axes") or []
    axes = set(shared if isinstance(shared, list) else [shared])
    shape = tuple(1 if axis + 1 in axes else extent for axis, extent in enumerate(x.shape))
    return ctx.step(x, PRelu(prelu_slope(ctx.weight("alpha", shape), x.shape)))


def rescaling(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Rescaling: x * scale + offset; of an integer image it is the dequantization."""
    x = only(inputs)
    scale, offset = ctx.config.get("scale"), ctx.config.get("offset", 0.0)
    scales, offsets = _channels(scale, x, "scale"), _channels(offset, x, "offset")
    if x.dtype != DataType.U8:
        return ctx.step(x, ScaleBias(scales, offsets))
    rational = None
    if not isinstance(scale, list) and not isinstance(offset, list):
        rational = _rational(number(scale, "scale"), number(offset, "offset"))
    return ctx.emit(Dequantize(scales, offsets, rational), [x], x.shape)


def _channels(value: object, x: Tensor, what: str) -> FloatArray:
    if isinstance(value, list):
        if len(value) not in (1, x.channels):
            raise UnsupportedError(
                f"{what} has {len(value)} numbers, the input {x.channels} channels"
            )
        numbers = np.array([number(item, what) for item in value], np.float32)
        return np.broadcast_to(numbers, (x.channels,)).copy()
    return constant(number(value, what), x.channels)


def _rational(scale: float, offset: float) -> tuple[int, int, int] | None:
    """(mul, add, divisor) if scale and offset are such fractions to the last bit of a double."""
    fractions = [Fraction(value).limit_denominator(1 << 16) for value in (scale, offset)]
    if any(float(f) != v for f, v in zip(fractions, (scale, offset), strict=True)):
        return None
    divisor = math.lcm(*(f.denominator for f in fractions))
    mul, shift = (int(f * divisor) for f in fractions)
    return (mul, shift, divisor) if max(abs(mul), abs(shift)) < 1 << 20 else None


def ignored(_: LayerContext, inputs: list[Tensor]) -> Tensor:
    """A layer that does nothing at inference: its output is its input's value."""
    return only(inputs)


IGNORED: Final = (
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "Identity",
    "NoOp",
    "SpatialDropout2D",
)

LAYERS: Final[dict[str, LayerFunction]] = {
    "Activation": activation,
    "Add": add,
    "AveragePooling2D": average_pooling2d,
    "BatchNormalization": batch_normalization,
    "Concatenate": concatenate,
    "Conv2D": conv2d,
    "Dense": dense,
    "DepthwiseConv2D": depthwise_conv2d,
    "ELU": activation_layer(element_function("elu")),
    "Flatten": flatten,
    "GlobalAveragePooling2D": global_average_pooling2d,
    "GlobalMaxPooling2D": global_max_pooling2d,
    "LeakyReLU": activation_layer(leaky_relu),
    "MaxPooling2D": max_pooling2d,
    "Multiply": multiply,
    "PReLU": prelu,
    "QuantConv2D": conv2d,
    "QuantDense": dense,
    "QuantDepthwiseConv2D": depthwise_conv2d,
    "QuantSeparableConv2D": separable_conv2d,
    "ReLU": activation_layer(relu),
    "Rescaling": rescaling,
    "Reshape": reshape,
    "SeparableConv2D": separable_conv2d,
    "Softmax": activation_layer(softmax),
    "Subtract": subtract,
    "SyncBatchNormalization": batch_normalization,
    "UpSampling2D": up_sampling2d,
    "ZeroPadding2D": zero_padding2d,
    **{name: activation_layer(quantizer) for name in LARQ_NAMES if name[0].isupper()},
    **dict.fromkeys(IGNORED, ignored),
}
