"""Activation functions, as arguments, as ``Activation`` layers and as layers of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras import shared_layers
from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
    number,
)
from phonebit.converter.importers.keras.qkeras_names import qkeras_name
from phonebit.converter.importers.keras.quantizer_functions import (
    Quantizer,
    UnsupportedQuantizerError,
)
from phonebit.converter.importers.keras.quantizers import QuantizerResolver, callable_name
from phonebit.converter.importers.keras.shared import Rule, by_calls
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Sign, Softmax
from phonebit.converter.ops.epilogue import (
    FUNCTIONS,
    AddTensor,
    Clamp,
    EpilogueOp,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Sigmoid
from phonebit.format.records import DataType

Parameters = Mapping[str, Any]
Activation = Callable[[LayerContext, Tensor, Parameters, str], Tensor]
"""(context, input, parameters, node suffix) -> the layer's output."""

_LIMITS: Final = {
    "clip_by_value_activation": (0.0, 1.0),
    "hard_tanh": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
}
IDENTITY: Final = ("linear", "Identity", "identity")


def activation_problem(
    value: object, quantizers: QuantizerResolver, path: tuple[str, ...]
) -> str | None:
    """Why an activation of the layer at ``path`` is unsupported, or None if it is fine."""
    name = callable_name(value)
    if is_linear(value) or name in ACTIVATIONS:
        return None
    try:
        quantizer = quantizers.resolve(value, path, "activation")
    except UnsupportedQuantizerError as error:
        if qkeras_name(value) is not None:
            return str(error)
        known = ", ".join(sorted(ACTIVATIONS))
        return (
            f"activation {name!r} is not supported; known: {known}, Larq's and QKeras's quantizers"
        )
    return f"activation {name}: {quantizer.problem}" if quantizer.problem else None


def is_linear(value: object) -> bool:
    """Whether an activation argument means none."""
    return value is None or callable_name(value) in IDENTITY


def activate(ctx: LayerContext, x: Tensor, value: object, suffix: str) -> Tensor:
    """Emits the (non-linear) activation ``value``; its result is the layer's output."""
    problem = activation_problem(value, ctx.quantizers, ctx.path)
    if problem:
        raise UnsupportedError(problem)
    name = str(callable_name(value))
    if name not in ACTIVATIONS:
        return _quantized(ctx, x, ctx.quantizers.resolve(value, ctx.path, "activation"), suffix)
    config = value.get("config") if isinstance(value, dict) else None
    parameters = config if isinstance(config, dict) else {}
    return ACTIVATIONS[name](ctx, x, parameters, suffix)


def quantizer(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """One of Larq's quantizers as a layer."""
    value = {"class_name": ctx.layer.class_name, "config": parameters}
    try:
        known = ctx.quantizers.known(value)
    except UnsupportedQuantizerError as error:
        raise UnsupportedError(str(error)) from error
    if known is None or known.problem:
        raise UnsupportedError(known.problem if known else "it is no quantizer")
    return _quantized(ctx, x, known, suffix)


def _quantized(ctx: LayerContext, x: Tensor, quantizer: Quantizer, suffix: str) -> Tensor:
    if quantizer.calls is not None:
        return by_calls(quantizer.calls, ctx, [x], suffix=suffix)[0]
    return x if quantizer.step is None else ctx.quantize(x, quantizer.step, suffix=suffix)


def softmax(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """Softmax over one axis."""
    axis = parameters.get("axis", -1)
    if isinstance(axis, list) and len(axis) == 1:
        axis = axis[0]
    if axis not in (-1, len(x.shape)):
        return by_calls(shared_layers.softmax, ctx, [x], {"axis": axis}, suffix)[0]
    return ctx.emit(Softmax(), [x], x.shape, suffix=suffix)


def relu(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """Keras's general ReLU: max_value above, x between, slope * (x - threshold) below.

    The comparison is ``x > threshold``, strictly; at the default threshold 0 that makes no
    difference, and min and max or a PReLU do. Any other threshold t makes a jump,
    x * [x > t] - slope * max(t - x, 0), where [x > t] = (1 - sign(t - x)) / 2.
    """
    top = parameters.get("max_value")
    high = math.inf if top is None else number(top, "max_value")
    slope = number(_first(parameters, ("negative_slope", "alpha"), 0.0) or 0.0, "negative_slope")
    threshold = number(parameters.get("threshold") or 0.0, "threshold")
    if threshold == 0 and slope == 0:
        return ctx.step(x, Clamp(0.0, high), suffix=suffix)
    if threshold == 0 and high == math.inf:
        return ctx.step(x, PRelu(constant(slope, x.channels)), suffix=suffix)
    if threshold == 0:
        x = ctx.step(x, PRelu(constant(slope, x.channels)), suffix="slope", inner="slope")
        return ctx.step(x, Clamp(-math.inf, high), suffix=suffix)
    return _relu_with_jump(ctx, x, (high, slope, threshold), suffix)


def _relu_with_jump(
    ctx: LayerContext, x: Tensor, settings: tuple[float, float, float], suffix: str
) -> Tensor:
    high, slope, threshold = settings
    ones, half = constant(1, x.channels), constant(0.5, x.channels)
    limit = constant(threshold, x.channels)
    below = ctx.step(x, ScaleBias(-ones, limit), suffix="below", inner="below")
    mask = ctx.emit(Sign(), [below], x.shape, suffix="compare", inner="compare", dtype=DataType.BIT)
    mask = ctx.step(mask, ScaleBias(-half, half), suffix="mask", inner="mask")
    last = high == math.inf and slope == 0
    kept = ctx.step(
        x, MultiplyTensor(1), mask, suffix=suffix if last else "kept", inner="" if last else "kept"
    )
    if high != math.inf:
        done = "" if slope == 0 else "clamped"
        kept = ctx.step(kept, Clamp(0.0, high), suffix=done or suffix, inner=done)
    if slope != 0:
        below = ctx.step(below, Clamp(0.0, math.inf), suffix="negative", inner="negative")
        scale = ScaleBias(constant(-slope, x.channels), 0 * ones)
        below = ctx.step(below, scale, suffix="leak", inner="leak")
        kept = ctx.step(kept, AddTensor(1), below, suffix=suffix)
    return kept


def thresholded_relu(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """X where x > theta, else 0."""
    return relu(ctx, x, {"threshold": parameters.get("theta", 1.0)}, suffix)


def leaky_relu(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """Slope below zero; the default of the layer is 0.3, that of the function 0.2."""
    default = 0.3 if ctx.layer.class_name == "LeakyReLU" else 0.2
    slope = number(_first(parameters, ("negative_slope", "alpha"), default), "alpha")
    return ctx.step(x, PRelu(constant(slope, x.channels)), suffix=suffix)


def _first(parameters: Parameters, names: tuple[str, ...], default: float) -> object:
    return next((parameters[name] for name in names if name in parameters), default)


def leaky_tanh(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
    """Larq: clip(x, -1, 1) + (max(x, 1) - 1) * a + (min(x, -1) + 1) * a."""
    slope = number(parameters.get("alpha", 0.2), "alpha")
    ones = constant(1, x.channels)
    total = ctx.step(x, Clamp(-1.0, 1.0), suffix="clip", inner="clip")
    sides = {"above": (1.0, math.inf, -ones), "below": (-math.inf, -1.0, ones)}
    for side, (low, high, shift) in sides.items():
        tail = ctx.step(x, Clamp(low, high), suffix=side, inner=side)
        tail = ctx.step(tail, ScaleBias(ones, shift), suffix=f"{side}_shift", inner=f"{side}_shift")
        scale = ScaleBias(constant(slope, x.channels), 0 * ones)
        tail = ctx.step(tail, scale, suffix=f"{side}_leak", inner=f"{side}_leak")
        last = side == "below"
        total = ctx.step(
            total, AddTensor(1), tail, suffix=suffix if last else "sum", inner="" if last else "sum"
        )
    return total


def hard_sigmoid(ctx: LayerContext, x: Tensor, _: Parameters, suffix: str) -> Tensor:
    """clip(x / 5 + 1/2, 0, 1) in Keras 2 and clip(x / 6 + 1/2, 0, 1) in Keras 3."""
    scale = constant(0.2 if ctx.keras_major == 2 else 1 / 6, x.channels)
    x = ctx.step(x, ScaleBias(scale, constant(0.5, x.channels)), suffix="line", inner="line")
    return ctx.step(x, Clamp(0.0, 1.0), suffix=suffix)


def swish(ctx: LayerContext, x: Tensor, _: Parameters, suffix: str) -> Tensor:
    """X * sigmoid(x)."""
    gate = ctx.step(x, Sigmoid(), suffix="gate", inner="gate")
    return ctx.step(x, MultiplyTensor(1), gate, suffix=suffix)


def prelu_slope(alpha: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """PReLU's slopes, one per channel where the other axes share it, else one per element."""
    if all(extent == 1 for extent in alpha.shape[:-1]):
        return np.broadcast_to(alpha.reshape(-1), shape[-1:]).copy()
    return np.broadcast_to(alpha, shape).reshape(-1).copy()


def _clamp(low: float, high: float) -> Activation:
    def emit(ctx: LayerContext, x: Tensor, _: Parameters, suffix: str) -> Tensor:
        return ctx.step(x, Clamp(low, high), suffix=suffix)

    return emit


def element_function(name: str) -> Activation:
    """One of ``ops.epilogue.FUNCTIONS`` by its name in Keras."""

    def emit(ctx: LayerContext, x: Tensor, parameters: Parameters, suffix: str) -> Tensor:
        return ctx.step(x, function_of_call(name, parameters), suffix=suffix)

    return emit


def function_of_call(name: str, arguments: Parameters) -> EpilogueOp:
    """A function by its name in Keras, as called with these arguments."""
    try:
        return FUNCTIONS["keras"][name].of_call(arguments)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _in_shared_terms(rule: Rule) -> Activation:
    return lambda ctx, x, parameters, suffix: by_calls(rule, ctx, [x], parameters, suffix)[0]


ACTIVATIONS: Final[dict[str, Activation]] = {
    **{name: _in_shared_terms(rule) for name, rule in shared_layers.ACTIVATIONS.items()},
    **{name: element_function(name) for name, f in FUNCTIONS["keras"].items() if f.is_activation},
    **{name: _clamp(*limits) for name, limits in _LIMITS.items()},
    "exponential": element_function("exp"),
    "ReLU": relu,
    "relu": relu,
    "LeakyReLU": leaky_relu,
    "leaky_relu": leaky_relu,
    "leaky_tanh": leaky_tanh,
    "hard_sigmoid": hard_sigmoid,
    "softmax": softmax,
    "Softmax": softmax,
    "softmax_v2": softmax,
    "swish": swish,
    "silu": swish,
}
