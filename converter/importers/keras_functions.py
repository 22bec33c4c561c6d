"""The functions that Keras records as layers of a graph.

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
from phonebit.converter.importers.keras_merging import add, concatenated, pair, subtract
from phonebit.converter.importers.keras_pointwise import ACTIVATIONS, Activation, element_function
from phonebit.converter.importers.keras_slicing import (
    expand_dims,
    gather,
    get_item,
    maximum_of_map,
    mean,
    pad,
    real_tensor,
    reshape,
    split,
    squeeze,
)
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
        if len(x.shape) != len(y.shape):  # NumPy's rule would pair channels with the batch
            raise UnsupportedError(f"operands of shapes {x.shape} and {y.shape}")
        return pair(ctx, x, y, step, "", "")
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


def _maximum(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, limit = _limited(ctx, arguments)
    return ctx.step(x, Clamp(limit, math.inf))


def _minimum(ctx: LayerContext, arguments: dict[str, Any]) -> Tensor:
    x, limit = _limited(ctx, arguments)
    return ctx.step(x, Clamp(-math.inf, limit))


def _limited(ctx: LayerContext, arguments: dict[str, Any]) -> tuple[Tensor, float]:
    """The tensor and the number of a maximum or minimum."""
    x, y = _operands(ctx, arguments)
    tensor, limit = (x, y) if isinstance(x, Tensor) else (y, x)
    if not isinstance(tensor, Tensor) or isinstance(limit, Tensor) or np.unique(limit).size != 1:
        raise UnsupportedError("of a tensor and one number only")
    return tensor, float(limit[0])


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


def _activation(emit: Activation) -> Function:
    return lambda ctx, arguments: emit(ctx, real_tensor(ctx, arguments.get("x")), arguments, "")


def _spellings(name: str) -> tuple[str, ...]:
    """A function's name in TensorFlow (tf.math, tf.nn) and as Keras 3's operation class."""
    return f"math.{name}", f"nn.{name}", name.title()


_XY: Final = ("x", "y", "name")
_ACTIVATIONS: Final = {
    "nn.leaky_relu": "leaky_relu",
    "nn.relu": "relu",
    "nn.relu6": "relu6",
    "nn.silu": "swish",
    "nn.softmax": "softmax",
    "HardSigmoid": "hard_sigmoid",
    "LeakyRelu": "leaky_relu",
    "Relu": "relu",
    "Relu6": "relu6",
    "Silu": "swish",
    "Softmax": "softmax",
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
    "clip_by_value": (_clip, ("x", "clip_value_min", "clip_value_max", "name")),
    "Clip": (_clip, ("x", "x_min", "x_max")),
    "cast": (_cast, ("x", "dtype", "name")),
    "Cast": (_cast, ("x", "dtype")),
    "identity": (_identity, ("x", "name")),
    "stop_gradient": (_identity, ("x",)),
    "StopGradient": (_identity, ("x",)),
    "math.negative": (_negative, ("x", "name")),
    "Negative": (_negative, ("x",)),
    "math.square": (_square, ("x", "name")),
    "Square": (_square, ("x",)),
    "math.abs": (_absolute, ("x", "name")),
    "Absolute": (_absolute, ("x",)),
    "math.sign": (_sign, ("x", "name")),
    "Sign": (_sign, ("x",)),
    "math.maximum": (_maximum, _XY),
    "Maximum": (_maximum, _XY),
    "math.minimum": (_minimum, _XY),
    "Minimum": (_minimum, _XY),
    "math.add_n": (_add_n, ("inputs", "name")),
    "nn.bias_add": (_bias_add, ("x", "bias")),
    "__operators__.getitem": (get_item, ("x", "key")),
    "GetItem": (get_item, ("x", "key")),
    "split": (split, ("x", "num_or_size_splits", "axis")),
    "Split": (split, ("x",)),
    "compat.v1.pad": (pad, ("x", "paddings")),
    "Pad": (pad, ("x", "constant_values")),
    "compat.v1.gather": (gather, ("x", "indices")),
    "Take": (gather, ("x", "indices")),
    "math.reduce_mean": (mean, ("x", "axis", "keepdims")),
    "Mean": (mean, ("x",)),
    "math.reduce_max": (maximum_of_map, ("x", "axis", "keepdims")),
    "Max": (maximum_of_map, ("x",)),
    "reshape": (reshape, ("x", "shape", "name")),
    "Reshape": (reshape, ("x", "newshape")),
    "expand_dims": (expand_dims, ("x", "axis", "name")),
    "ExpandDims": (expand_dims, ("x",)),
    "compat.v1.squeeze": (squeeze, ("x", "axis", "name")),
    "Squeeze": (squeeze, ("x",)),
    **{name: (_activation(ACTIVATIONS[kind]), ("x",)) for name, kind in _ACTIVATIONS.items()},
    **{
        spelled: (_activation(element_function(name)), ("x",))
        for name in ELEMENT_FUNCTIONS
        for spelled in _spellings(name)
    },
}
"""By the name of a TensorFlow function (Keras 2) or of an operation class (Keras 3)."""
