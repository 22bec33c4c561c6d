"""The registry of Keras layer classes, and those that are neither convolutions nor functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.convolutions import (
    conv,
    dense,
    depthwise_conv,
    only,
    separable_conv,
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
    thresholded_relu,
)
from phonebit.converter.importers.keras.quantizers import LARQ_NAMES
from phonebit.converter.importers.keras.reshaping import reshaped
from phonebit.converter.importers.keras.shared import Rule, by_calls
from phonebit.converter.importers.keras.shared_convolutions import conv3d, conv_transpose
from phonebit.converter.importers.keras.shared_layers import SHARED
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import AveragePool2D, BatchNorm, Dequantize, MaxPool2D, Reshape
from phonebit.converter.ops.epilogue import PRelu, ScaleBias
from phonebit.format.records import DataType

LayerFunction = Callable[[LayerContext, list[Tensor]], Tensor | list[Tensor]]


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


def _pool_window(ctx: LayerContext, x: Tensor, axes: int) -> tuple[Window, tuple[int, ...]]:
    kernel = integers(ctx.config, "pool_size", axes, 2)
    strides = integers(ctx.config, "strides", axes) if ctx.config.get("strides") else kernel
    window, size = sliding_window(ctx.config.get("padding", "valid"), x, kernel, strides)
    return window, (*size, x.channels)


def max_pooling(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """MaxPooling1D and 2D; on bits it stays bits."""
    x = ctx.real(only(inputs))
    window, shape = _pool_window(ctx, x, axes)
    return ctx.emit(MaxPool2D(window), [x], shape, dtype=x.dtype)


def average_pooling(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """AveragePooling1D and 2D; padded taps do not count."""
    x = ctx.real(only(inputs))
    window, shape = _pool_window(ctx, x, axes)
    return ctx.emit(AveragePool2D(window), [x], shape)


def _global_shape(ctx: LayerContext, x: Tensor, axes: int) -> tuple[int, ...]:
    needs_rank(x, axes + 1)
    return (*[1] * axes, x.channels) if ctx.config.get("keepdims") else (x.channels,)


def global_average_pooling(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """GlobalAveragePooling1D, 2D and 3D: a window as large as the map."""
    x = ctx.real(only(inputs))
    shape = _global_shape(ctx, x, axes)
    return ctx.emit(AveragePool2D(Window(x.hwc[:2])), [x], shape)


def global_max_pooling(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """GlobalMaxPooling1D, 2D and 3D: a window as large as the map."""
    x = ctx.real(only(inputs))
    shape = _global_shape(ctx, x, axes)
    return ctx.emit(MaxPool2D(Window(x.hwc[:2])), [x], shape, dtype=x.dtype)


def flatten(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Flatten, in (height, width, channel) order."""
    x = only(inputs)
    total = math.prod(x.shape)
    return ctx.emit(Reshape((1, 1, total)), [x], (total,), dtype=x.dtype)


def reshape(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Reshape; one of the axes may be -1."""
    return reshaped(ctx, only(inputs), ctx.config.get("target_shape"))


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


def shared(rule: Rule) -> LayerFunction:
    """A layer that a rule expresses in ONNX's terms."""
    return lambda ctx, inputs: by_calls(rule, ctx, inputs)


IGNORED: Final = (
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "Identity",
    "NoOp",
    "RandomBrightness",
    "RandomContrast",
    "RandomFlip",
    "RandomHeight",
    "RandomRotation",
    "RandomTranslation",
    "RandomWidth",
    "RandomZoom",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
)
ALONG_AXES: Final[dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]]] = {
    "AveragePooling": (average_pooling, (1, 2)),
    "Conv": (conv, (1, 2)),
    "DepthwiseConv": (depthwise_conv, (1, 2)),
    "GlobalAveragePooling": (global_average_pooling, (1, 2, 3)),
    "GlobalMaxPooling": (global_max_pooling, (1, 2, 3)),
    "MaxPooling": (max_pooling, (1, 2)),
    "QConv": (conv, (1, 2)),
    "QDepthwiseConv": (depthwise_conv, (2,)),
    "QSeparableConv": (separable_conv, (1, 2)),
    "QuantConv": (conv, (1, 2)),
    "QuantDepthwiseConv": (depthwise_conv, (2,)),
    "QuantSeparableConv": (separable_conv, (1, 2)),
    "SeparableConv": (separable_conv, (1, 2)),
}
"""Functions of layers along one axis or several, and for how many there is a class."""

LAYERS: Final[dict[str, LayerFunction]] = {
    **{
        f"{name}{axes}D": partial(function, axes)
        for name, (function, numbers) in ALONG_AXES.items()
        for axes in numbers
    },
    **{name: shared(rule) for name, rule in SHARED.items()},
    "Activation": activation,
    "Add": add,
    "BatchNormalization": batch_normalization,
    "Concatenate": concatenate,
    "Conv1DTranspose": partial(conv_transpose, 1),
    "Conv2DTranspose": partial(conv_transpose, 2),
    "Conv3D": conv3d,
    "Dense": dense,
    "ELU": activation_layer(element_function("elu")),
    "Flatten": flatten,
    "LeakyReLU": activation_layer(leaky_relu),
    "Multiply": multiply,
    "PReLU": prelu,
    "QuantConv2DTranspose": partial(conv_transpose, 2),
    "QuantConv3D": conv3d,
    "QuantDense": dense,
    "ReLU": activation_layer(relu),
    "Rescaling": rescaling,
    "Reshape": reshape,
    "Softmax": activation_layer(softmax),
    "Subtract": subtract,
    "SyncBatchNormalization": batch_normalization,
    "ThresholdedReLU": activation_layer(thresholded_relu),
    "QActivation": activation,
    "QConv2DBatchnorm": partial(conv, 2),
    "QConv2DTranspose": partial(conv_transpose, 2),
    "QDense": dense,
    "QDepthwiseConv2DBatchnorm": partial(depthwise_conv, 2),
    **{name: activation_layer(quantizer) for name in LARQ_NAMES if name[0].isupper()},
    **dict.fromkeys(IGNORED, ignored),
}
