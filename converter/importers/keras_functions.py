"""Merging layers, and the functions that Keras records as layers of a graph.

``x + y`` on Keras tensors becomes a ``TFOpLambda`` layer in Keras 2 and an ``Operation`` node in
Keras 3; both end in the same functions here, by the name of what they compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras_graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
    number,
    tensors,
)
from phonebit.converter.importers.keras_pointwise import ACTIVATIONS
from phonebit.converter.ir import (
    AddTensor,
    Clamp,
    Concat,
    FloatArray,
    MultiplyTensor,
    Reshape,
    ScaleBias,
)
from phonebit.format.records import DataType

Operand = Tensor | FloatArray
Function = Callable[[LayerContext, dict[str, Any]], Tensor]


# --- merging layers -------------------------------------------------------------------------------


def add(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Add, from left to right."""
    return _merge(ctx, inputs, AddTensor(1), "sum")


def multiply(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Multiply, from left to right."""
    return _merge(ctx, inputs, MultiplyTensor(1), "product")


def subtract(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Subtract: x - y = x + (-1) * y, which rounds the same."""
    if len(inputs) != 2:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected two")
    x, y = (ctx.real(tensor) for tensor in inputs)
    ones = constant(1, y.channels)
    y = ctx.step(y, ScaleBias(-ones, 0 * ones), suffix="negative", inner="negative")
    return _pair(ctx, x, y, AddTensor(1), "", "")


def _merge(
    ctx: LayerContext, inputs: list[Tensor], step: AddTensor | MultiplyTensor, inner: str
) -> Tensor:
    if len(inputs) < 2:
        raise UnsupportedError(f"called with {len(inputs)} tensors, expected at least two")
    total, *others = (ctx.real(tensor) for tensor in inputs)
    for position, other in enumerate(others, start=1):
        name = "" if position == len(others) else f"{inner}{position}"
        total = _pair(ctx, total, other, step, name, name)
    return total


def _pair(
    ctx: LayerContext,
    x: Tensor,
    y: Tensor,
    step: AddTensor | MultiplyTensor,
    suffix: str,
    inner: str,
) -> Tensor:
    """One sum or product; both commute to the last bit, so the larger operand can come first."""
    if math.prod(x.shape) < math.prod(y.shape):
        x, y = y, x
    if y.hwc not in (x.hwc, (1, 1, x.channels)):
        raise UnsupportedError(
            f"operands of shapes {x.shape} and {y.shape}; they must be equal, or one must be one "
            "number a channel"
        )
    return ctx.step(x, step, y, suffix=suffix, inner=inner)


def concatenate(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Concatenate, along the last axis."""
    return _concatenated(ctx, inputs, ctx.config.get("axis", -1))


def _concatenated(ctx: LayerContext, inputs: list[Tensor], axis: object) -> Tensor:
    if not inputs:
        raise UnsupportedError("called without tensors")
    inputs = [ctx.real(tensor) for tensor in inputs]
    first = inputs[0]
    if axis not in (-1, len(first.shape)):
        raise UnsupportedError(f"axis={axis}; only the last axis (-1) is supported")
    if any(tensor.shape[:-1] != first.shape[:-1] for tensor in inputs):
        raise UnsupportedError(f"operands of shapes {[tensor.shape for tensor in inputs]}")
    if len(inputs) == 1:
        return first
    bits = all(tensor.dtype == DataType.BIT for tensor in inputs)
    shape = (*first.shape[:-1], sum(tensor.channels for tensor in inputs))
    return ctx.emit(Concat(), inputs, shape, dtype=DataType.BIT if bits else DataType.F32)


# --- functions recorded as layers -----------------------------------------------------------------


def call_function(ctx: LayerContext, name: str, args: list[Any], kwargs: dict[str, Any]) -> Tensor:
    """Emits a recorded function call.

    Args:
        ctx: The call.
        name: A key of FUNCTIONS.
        args: Positional arguments with Tensors as leaves.
        kwargs: Keyword arguments, the same.
    """
    function, parameters = FUNCTIONS[name]
    if len(args) > len(parameters):
        raise UnsupportedError(f"{name} is called with {len(args)} positional arguments")
    return function(ctx, dict(zip(parameters, args, strict=False)) | kwargs)


def _operand(ctx: LayerContext, value: Any, partner: Any) -> Operand:
    """A tensor, or a constant as one number for each channel of ``partner``."""
    found = tensors(value)
    if found:
        return ctx.real(found[0])
    channels = tensors(partner)[0].channels if tensors(partner) else 1
    try:
        array = np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"constant operand {value!r} is not numeric") from error
    if array.size == 1:
        return constant(float(array.reshape(())), channels)
    if array.shape[-1:] != (channels,) or array.size != channels or not np.isfinite(array).all():
        raise UnsupportedError(
            f"constant operand of shape {array.shape}; a scalar or one number a channel is expected"
        )
    return array.reshape(channels)


def _operands(ctx: LayerContext, arguments: dict[str, Any]) -> tuple[Operand, Operand]:
    x, y = arguments.get("x"), arguments.get("y")
    return _operand(ctx, x, y), _operand(ctx, y, x)


def _binary(ctx: LayerContext, x: Operand, y: Operand, step: AddTensor | MultiplyTensor) -> Tensor:
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        if len(x.shape) != len(y.shape):  # NumPy's rule would pair channels with the batch
            raise UnsupportedError(f"operands of shapes {x.shape} and {y.shape}")
        return _pair(ctx, x, y, step, "", "")
    tensor, value = (x, y) if isinstance(x, Tensor) else (y, x)
    if not isinstance(tensor, Tensor) or isinstance(value, Tensor):
        raise UnsupportedError("called without a tensor")
    ones = constant(1, tensor.channels)
    scale_bias = (
        ScaleBias(ones, value) if isinstance(step, AddTensor) else ScaleBias(value, 0 * ones)
    )
    return ctx.step(tensor, scale_bias)


def _add(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, y = _operands(ctx, arguments)
    return _binary(ctx, x, y, AddTensor(1))


def _multiply(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, y = _operands(ctx, arguments)
    return _binary(ctx, x, y, MultiplyTensor(1))


def _subtract(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, y = _operands(ctx, arguments)
    if not isinstance(y, Tensor):
        return _binary(ctx, x, -y, AddTensor(1))
    if isinstance(x, Tensor):
        return subtract(ctx, [x, y])
    return ctx.step(y, ScaleBias(constant(-1, y.channels), x))


def _divide(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, y = _operands(ctx, arguments)
    if not isinstance(x, Tensor) or isinstance(y, Tensor):
        raise UnsupportedError("division is supported of a tensor by a constant only")
    if not np.all(np.abs(np.frexp(y)[0]) == 0.5):
        raise UnsupportedError(
            "division by a constant that is no power of two rounds differently from any product; "
            "multiply by its reciprocal instead"
        )
    return _binary(ctx, x, (1 / y).astype(np.float32), MultiplyTensor(1))


def _concat(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    values = arguments.get("values")
    if not isinstance(values, list) or not all(isinstance(value, Tensor) for value in values):
        raise UnsupportedError("concatenates constants")
    return _concatenated(ctx, values, arguments.get("axis", -1))


def _reshape(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    """tf.reshape: the batch is the first axis and must stay, written as -1."""
    x = _real_tensor(ctx, arguments.get("tensor"))
    shape = arguments.get("shape", arguments.get("newshape"))
    if not isinstance(shape, list) or not all(isinstance(n, int) for n in shape):
        raise UnsupportedError(f"reshapes to {shape!r}; a list of integers is expected")
    rest = shape[1:]
    if not 1 <= len(rest) <= 3 or min(rest) < 1 or math.prod(rest) != math.prod(x.shape):
        raise UnsupportedError(
            f"reshapes {('batch', *x.shape)} to {tuple(shape)}; the first axis must stay the batch"
        )
    result = Tensor(x.value, tuple(rest))
    return ctx.emit(Reshape(result.hwc), [x], result.shape, dtype=x.dtype)


def _clip(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    low = arguments.get("clip_value_min", arguments.get("x_min"))
    high = arguments.get("clip_value_max", arguments.get("x_max"))
    step = Clamp(number(low, "clip_value_min"), number(high, "clip_value_max"))
    return ctx.step(_real_tensor(ctx, arguments.get("x")), step)


def _cast(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    if arguments.get("dtype") not in ("float32", "float"):
        raise UnsupportedError(f"casts to {arguments.get('dtype')!r}; only float32 is supported")
    return _real_tensor(ctx, arguments.get("x"), "")


def _identity(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    return _real_tensor(ctx, arguments.get("x"))


def _real_tensor(ctx: LayerContext, value: Any, inner: str = "cast") -> Tensor:
    found = tensors(value)
    if len(found) != 1:
        raise UnsupportedError(f"called with {len(found)} tensors, expected one")
    return ctx.real(found[0], inner)


def _activation(name: str) -> Function:
    def emit(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
        return ACTIVATIONS[name](ctx, _real_tensor(ctx, arguments.get("x")), arguments, "")

    return emit


_XY: Final = ("x", "y", "name")
_ACTIVATION_FUNCTIONS: Final = {
    "math.sigmoid": "sigmoid",
    "math.tanh": "tanh",
    "nn.leaky_relu": "leaky_relu",
    "nn.relu": "relu",
    "nn.relu6": "relu6",
    "nn.sigmoid": "sigmoid",
    "nn.silu": "swish",
    "nn.softmax": "softmax",
    "nn.tanh": "tanh",
    "HardSigmoid": "hard_sigmoid",
    "LeakyRelu": "leaky_relu",
    "Relu": "relu",
    "Relu6": "relu6",
    "Sigmoid": "sigmoid",
    "Silu": "swish",
    "Softmax": "softmax",
    "Tanh": "tanh",
}

FUNCTIONS: Final[dict[str, tuple[Function, tuple[str, ...]]]] = {
    "__operators__.add": (_add, _XY),
    "math.add": (_add, _XY),
    "Add": (_add, _XY),
    "math.multiply": (_multiply, _XY),
    "Multiply": (_multiply, _XY),
    "math.subtract": (_subtract, _XY),
    "Subtract": (_subtract, _XY),
    "math.divide": (_divide, _XY),
    "math.truediv": (_divide, _XY),
    "Divide": (_divide, _XY),
    "TrueDivide": (_divide, _XY),
    "concat": (_concat, ("values", "axis", "name")),
    "Concatenate": (_concat, ("values", "axis")),
    "reshape": (_reshape, ("tensor", "shape", "name")),
    "Reshape": (_reshape, ("tensor", "newshape")),
    "clip_by_value": (_clip, ("x", "clip_value_min", "clip_value_max", "name")),
    "Clip": (_clip, ("x", "x_min", "x_max")),
    "cast": (_cast, ("x", "dtype", "name")),
    "Cast": (_cast, ("x", "dtype")),
    "identity": (_identity, ("x", "name")),
    **{name: (_activation(kind), ("x",)) for name, kind in _ACTIVATION_FUNCTIONS.items()},
}
"""By the name of a TensorFlow function (Keras 2) or of an operation class (Keras 3)."""
