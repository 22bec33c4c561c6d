"""The functions that Keras records as layers of a graph.

``x + y`` on Keras tensors becomes a ``TFOpLambda`` layer in Keras 2 and an ``Operation`` node in
Keras 3; both end in the same functions here, by the name of what they compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras import shared_functions
from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    constant,
    number,
    tensors,
)
from phonebit.converter.importers.keras.merging import add, concatenated, fit, pair, subtract
from phonebit.converter.importers.keras.pointwise import ACTIVATIONS, Activation, element_function
from phonebit.converter.importers.keras.reshaping import (
    expand_dims,
    real_tensor,
    reshape,
    squeeze,
)
from phonebit.converter.importers.keras.shared import Rule, by_calls
from phonebit.converter.ir import SMALLEST, FloatArray
from phonebit.converter.ops import Divide, Quantize
from phonebit.converter.ops.epilogue import FUNCTIONS as ELEMENT_FUNCTIONS
from phonebit.converter.ops.epilogue import AddTensor, Clamp, MultiplyTensor, PRelu, ScaleBias

Operand = Tensor | FloatArray
Function = Callable[[LayerContext, dict[str, Any]], Tensor | list[Tensor]]


def call_function(
    ctx: LayerContext, name: str, args: list[Any], kwargs: dict[str, Any]
) -> list[Tensor]:
    """Emits a recorded function call and returns its results.

    Args:
        ctx: The call.
        name: A key of FUNCTIONS.
        args: Positional arguments with Tensors as leaves.
        kwargs: Keyword arguments, the same.
    """
    function, parameters = FUNCTIONS[name]
    if len(args) > len(parameters):
        raise UnsupportedError(f"{name} is called with {len(args)} positional arguments")
    results = function(ctx, dict(zip(parameters, args, strict=False)) | kwargs)
    return results if isinstance(results, list) else [results]


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
        if len(x.shape) == len(y.shape) and fit(x, y):
            return pair(ctx, x, y, step, "", "")
        op = "Add" if isinstance(step, AddTensor) else "Mul"
        return _of_two(op, ctx, {"x": x, "y": y})
    tensor, value = (x, y) if isinstance(x, Tensor) else (y, x)
    if not isinstance(tensor, Tensor) or isinstance(value, Tensor):
        raise UnsupportedError("called without a tensor")
    ones = constant(1, tensor.channels)
    scale_bias = (
        ScaleBias(ones, value) if isinstance(step, AddTensor) else ScaleBias(value, 0 * ones)
    )
    return ctx.step(tensor, scale_bias)


def _of_two(op: str, ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    """An operation of two tensors by the shared rules."""
    rule = partial(shared_functions.of_two, op)
    return by_calls(rule, ctx, tensors(list(arguments.values())), arguments)[0]


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
        same = len(x.shape) == len(y.shape) and fit(x, y)
        return subtract(ctx, [x, y]) if same else _of_two("Sub", ctx, {"x": x, "y": y})
    return ctx.step(y, ScaleBias(constant(-1, y.channels), x))


def _divide(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, y = _operands(ctx, arguments)
    if not isinstance(x, Tensor) or isinstance(y, Tensor):
        return _of_two("Div", ctx, {"x": x, "y": y})
    if not np.all(y):
        raise UnsupportedError("divides by zero")
    if np.all(np.abs(np.frexp(y)[0]) == 0.5):  # the reciprocal of a power of two is exact
        return _binary(ctx, x, (1 / y).astype(np.float32), MultiplyTensor(1))
    return ctx.emit(Divide(y), [x], x.shape)


def _bias_add(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    return _add(ctx, {"x": arguments.get("x"), "y": arguments.get("bias")})


def _negative(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    return _multiply(ctx, {"x": arguments.get("x"), "y": -1.0})


def _square(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x = real_tensor(ctx, arguments.get("x"))
    return ctx.step(x, MultiplyTensor(1), x)


def _absolute(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x = real_tensor(ctx, arguments.get("x"))
    return ctx.step(x, PRelu(constant(-1, x.channels)))


def _sign(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    """tf.sign, whose 0 stays 0."""
    thresholds, values = np.array([0, SMALLEST], np.float32), np.array([-1, 0, 1], np.float32)
    return ctx.quantize(real_tensor(ctx, arguments.get("x")), Quantize(thresholds, values))


def _extreme(op: str, ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    """The larger or smaller of a tensor and one number, or of two tensors."""
    x, y = _operands(ctx, arguments)
    tensor, limit = (x, y) if isinstance(x, Tensor) else (y, x)
    if not isinstance(tensor, Tensor) or isinstance(limit, Tensor) or np.unique(limit).size != 1:
        return _of_two(op, ctx, {"x": x, "y": y})
    number_of = float(limit[0])
    return ctx.step(
        tensor, Clamp(number_of, math.inf) if op == "Max" else Clamp(-math.inf, number_of)
    )


def _add_n(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    return add(ctx, tensors(arguments.get("inputs")))


def _concat(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    values = arguments.get("values")
    if not isinstance(values, list) or not all(isinstance(value, Tensor) for value in values):
        raise UnsupportedError("concatenates constants")
    return concatenated(ctx, values, arguments.get("axis", -1))


def _clip(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    low = arguments.get("clip_value_min", arguments.get("x_min"))
    high = arguments.get("clip_value_max", arguments.get("x_max"))
    step = Clamp(number(low, "clip_value_min"), number(high, "clip_value_max"))
    return ctx.step(real_tensor(ctx, arguments.get("x")), step)


def _cast(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    if arguments.get("dtype") not in ("float32", "float"):
        raise UnsupportedError(f"casts to {arguments.get('dtype')!r}; only float32 is supported")
    return real_tensor(ctx, arguments.get("x"), "")


def _identity(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    return real_tensor(ctx, arguments.get("x"))


def _by_rule(rule: Rule) -> Function:
    def emit(ctx: LayerContext, arguments: dict[str, Any]) -> list[Tensor]:
        return by_calls(rule, ctx, tensors(list(arguments.values())), arguments)

    return emit


def _activation(emit: Activation) -> Function:
    return lambda ctx, arguments: emit(ctx, real_tensor(ctx, arguments.get("x")), arguments, "")


def _spellings(name: str) -> tuple[str, ...]:
    """A function's name in TensorFlow (tf.math, tf.nn) and as Keras 3's operation class."""
    return f"math.{name}", f"nn.{name}", name.title()


_XY: Final = ("x", "y", "name")
_ACTIVATIONS: Final = {
    "hard_sigmoid": ("HardSigmoid",),
    "leaky_relu": ("nn.leaky_relu", "LeakyRelu"),
    "relu": ("nn.relu", "Relu"),
    "relu6": ("nn.relu6", "Relu6"),
    "log_softmax": ("nn.log_softmax", "LogSoftmax"),
    "selu": ("nn.selu", "Selu"),
    "softmax": ("nn.softmax", "Softmax"),
    "softsign": ("nn.softsign", "Softsign"),
    "swish": ("nn.silu", "Silu"),
}

_ROWS: Final[tuple[tuple[Function, tuple[str, ...], tuple[str, ...]], ...]] = (
    (_add, _XY, ("__operators__.add", "math.add", "Add")),
    (_multiply, _XY, ("math.multiply", "Multiply")),
    (_subtract, _XY, ("math.subtract", "Subtract")),
    (_divide, _XY, ("math.divide", "math.truediv", "Divide", "TrueDivide")),
    (partial(_extreme, "Max"), _XY, ("math.maximum", "Maximum")),
    (partial(_extreme, "Min"), _XY, ("math.minimum", "Minimum")),
    (_negative, ("x", "name"), ("math.negative", "Negative")),
    (_square, ("x", "name"), ("math.square", "Square")),
    (_absolute, ("x", "name"), ("math.abs", "Absolute")),
    (_sign, ("x", "name"), ("math.sign", "Sign")),
    (_identity, ("x", "name"), ("identity", "stop_gradient", "StopGradient")),
    (_cast, ("x", "dtype", "name"), ("cast", "Cast")),
    (_clip, ("x", "clip_value_min", "clip_value_max", "name"), ("clip_by_value",)),
    (_clip, ("x", "x_min", "x_max"), ("Clip",)),
    (_add_n, ("inputs", "name"), ("math.add_n",)),
    (_bias_add, ("x", "bias"), ("nn.bias_add",)),
    (_concat, ("values", "axis", "name"), ("concat", "Concatenate")),
    (reshape, ("x", "shape", "name"), ("reshape",)),
    (reshape, ("x", "newshape"), ("Reshape",)),
    (expand_dims, ("x", "axis", "name"), ("expand_dims", "ExpandDims")),
    (squeeze, ("x", "axis", "name"), ("compat.v1.squeeze", "Squeeze")),
    *((_by_rule(rule), parameters, names) for rule, parameters, names in shared_functions.ROWS),
    *((_activation(ACTIVATIONS[kind]), ("x",), names) for kind, names in _ACTIVATIONS.items()),
    *(
        (_activation(element_function(n)), ("x",), _spellings(n))
        for n in ELEMENT_FUNCTIONS["keras"]
    ),
)
"""A function, its parameters in the order of positional arguments, and how it is spelled."""

FUNCTIONS: Final = {
    name: (function, parameters) for function, parameters, names in _ROWS for name in names
}
"""By the name of a TensorFlow function (Keras 2) or of an operation class (Keras 3)."""
