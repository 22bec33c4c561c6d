"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.calls import FLOATS, Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.ops.epilogue import FUNCTIONS
from phonebit.converter.ops.epilogue.functions import Function

Array = NDArray[Any]
ERF: Final = np.frompyfunc(math.erf, 1, 1)


def unary(builder: Builder, op: str, call: Call, dtype: str | None = None) -> Call:
    """One of ``UNARY`` of a call."""
    return builder.emit(op, {"self": call}, UNARY[op], call.shape, dtype)


def binary(builder: Builder, op: str, first: Call | float, second: Call | float) -> Call:
    """One of ``BINARY`` of two calls, or of a call and a number."""
    arguments: dict[str, Any] = {"self": first, "other": second}
    calls = [operand for operand in (first, second) if isinstance(operand, Call)]
    shape = broadcast([call.shape for call in calls])
    for name, operand in arguments.items():
        if isinstance(operand, Call) and len(calls) == 2:
            other = calls[0] if operand is calls[1] else calls[1]
            arguments[name] = plain_number(builder, operand, other, shape)
    dtype = "bool" if op in COMPARISONS | LOGICAL else calls[0].dtype
    if op == "pow" and not isinstance(first, Call):
        dtype = "float32"
    if op == "pow":
        arguments["exponent"] = arguments.pop("other")
    return builder.emit(op, arguments, BINARY[op], shape, dtype)


def plain_number(builder: Builder, operand: Call, other: Call, shape: tuple[int, ...]) -> Any:
    """A constant that is one number as a number, if it changes no shape."""
    is_float = operand.dtype == "float32" and not other.constant and other.dtype == "float32"
    if not operand.constant or not is_float or other.shape != shape:
        return operand
    value = np.asarray(builder.constants.value(operand))
    return float(value.item()) if value.size == 1 else operand


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of operands together.

    Raises:
        UnsupportedError: They do not fit.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise UnsupportedError(f"has operands of shapes {shapes}, which do not fit") from error


def where(builder: Builder, mask: Call, chosen: Call | float, other: Call | float) -> Call:
    """``chosen`` where the mask holds, else ``other``."""
    calls = [c for c in (mask, chosen, other) if isinstance(c, Call)]
    dtype = next((c.dtype for c in calls[1:] if c.dtype is not None), "float32")
    arguments = {"condition": mask, "self": chosen, "other": other}
    target = partial(_where, dtype)
    return builder.emit("where", arguments, target, broadcast([c.shape for c in calls]), dtype)


def clamp(builder: Builder, call: Call, low: float | None, high: float | None) -> Call:
    """A call limited to [low, high]; None is no limit."""
    arguments = {"self": call, "min": low, "max": high}
    return builder.emit("clamp", arguments, _clamp, call.shape)


def _where(dtype: str, /, condition: Array, self: Any, other: Any) -> Array:
    return np.asarray(np.where(condition, self, other), dtype)


def _clamp(self: Array, min: Any, max: Any) -> Array:
    return np.asarray(np.clip(self, min, max)) if (min, max) != (None, None) else self


def _divide(self: Any, other: Any) -> Any:
    if np.asarray(self).dtype.kind in "iu":  # towards zero, as ONNX has it
        return np.trunc(np.true_divide(self, other)).astype(np.asarray(self).dtype)
    return np.true_divide(self, other)


def _function(function: type[Function], /, self: Array) -> Array:
    """An epilogue operation's function, in the type of what it maps."""
    return np.asarray(function().apply(np.asarray(self), []), np.asarray(self).dtype)


UNARY: Final[dict[str, Callable[..., Any]]] = {
    "sign": lambda self: np.sign(self),
    "neg": lambda self: np.negative(self),
    "abs": lambda self: np.abs(self),
    "floor": lambda self: np.floor(self),
    "ceil": lambda self: np.ceil(self),
    "relu": lambda self: np.maximum(self, 0),
    "logical_not": lambda self: np.logical_not(self),
    "erf": lambda self: np.asarray(ERF(self), np.float32),
    **{each.names.torch: partial(_function, each) for each in FUNCTIONS["onnx"].values()},
}
BINARY: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda self, other: np.add(self, other),
    "sub": lambda self, other: np.subtract(self, other),
    "mul": lambda self, other: np.multiply(self, other),
    "div": _divide,
    "pow": lambda self, exponent: np.power(self, exponent),
    "remainder": lambda self, other: np.mod(self, other),
    "fmod": lambda self, other: np.fmod(self, other),
    "maximum": lambda self, other: np.maximum(self, other),
    "minimum": lambda self, other: np.minimum(self, other),
    "gt": lambda self, other: np.greater(self, other),
    "ge": lambda self, other: np.greater_equal(self, other),
    "lt": lambda self, other: np.less(self, other),
    "le": lambda self, other: np.less_equal(self, other),
    "eq": lambda self, other: np.equal(self, other),
    "logical_and": lambda self, other: np.logical_and(self, other),
    "logical_or": lambda self, other: np.logical_or(self, other),
    "logical_xor": lambda self, other: np.logical_xor(self, other),
}
COMPARISONS: Final = frozenset({"gt", "ge", "lt", "le", "eq"})
LOGICAL: Final = frozenset({"logical_and", "logical_or", "logical_xor"})


def _unary(op: str, builder: Builder, node: Node) -> Call:
    return unary(builder, op, node.operand(0))


def _binary(op: str, builder: Builder, node: Node) -> Call:
    return binary(builder, op, node.operand(0), node.operand(1))


def _chain(op: str, builder: Builder, node: Node) -> Call:
    """Operators of any number of operands."""
    result = node.operand(0)
    for index in range(1, len(node.inputs)):
        result = binary(builder, op, result, node.operand(index))
    return result


def _power(builder: Builder, node: Node) -> Call:
    base, exponent = node.operand(0), node.operand(1)
    if not base.constant and exponent.constant and math.prod(exponent.shape) == 1:
        number = builder.number(exponent, "exponents")
        if number == 1:
            return base
        if number == 2:
            return binary(builder, "mul", base, base)
        if number == 0.5:
            return unary(builder, "sqrt", base)
    return binary(builder, "pow", base, exponent)


def _modulo(builder: Builder, node: Node) -> Call:
    return _binary("fmod" if node.get("fmod", 0) else "remainder", builder, node)


def _clip(builder: Builder, node: Node) -> Call:
    limits: list[float | None] = []
    for index, name in ((1, "min"), (2, "max")):
        limit = node.input(index)
        limits.append(node.get(name) if limit is None else builder.number(limit, "limits"))
    return clamp(builder, node.operand(0), limits[0], limits[1])


def _choice(builder: Builder, node: Node) -> Call:
    mask, chosen, other = (node.operand(index) for index in range(3))
    shape = broadcast([mask.shape, chosen.shape, other.shape])
    options = [plain_number(builder, option, mask_like(mask), shape) for option in (chosen, other)]
    return where(builder, mask, options[0], options[1])


def mask_like(mask: Call) -> Call:
    """A tensor of numbers next to which a constant may be a plain number."""
    return Call("", "empty", None, {}, mask.shape, "float32", constant=mask.constant)


def _cast(builder: Builder, node: Node) -> Call:
    from onnx import helper

    try:
        dtype = str(np.dtype(helper.tensor_dtype_to_np_dtype(int(node.get("to", 0)))))
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedError(f"casts to an unknown type {node.get('to')!r}") from error
    return cast(builder, node.operand(0), dtype)


def cast(builder: Builder, call: Call, dtype: str) -> Call:
    """A call in another element type."""
    if call.dtype == dtype:
        return call
    if not call.constant and dtype in FLOATS - {"float32"}:
        raise UnsupportedError(f"casts to {dtype}; export the network in float32")
    return builder.emit("to", {"self": call}, partial(_to, dtype), call.shape, dtype)


def _to(dtype: str, /, self: Array) -> Array:
    return np.asarray(self).astype(dtype)


def _cast_like(builder: Builder, node: Node) -> Call:
    return cast(builder, node.operand(0), str(node.operand(1).dtype))


def _same(builder: Builder, node: Node) -> list[Call | None]:
    """Identity, and dropout outside of training."""
    training = node.input(2)
    if training is not None and builder.number(training, "training modes"):
        raise UnsupportedError("is in training mode; export the network in eval()")
    return [node.operand(0), None]


ELEMENTWISE: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    **{
        name: partial(_unary, op)
        for name, op in {
            "Sign": "sign",
            "Neg": "neg",
            "Abs": "abs",
            "Floor": "floor",
            "Ceil": "ceil",
            "Relu": "relu",
            "Not": "logical_not",
            "Erf": "erf",
            **{name: function.names.torch for name, function in FUNCTIONS["onnx"].items()},
        }.items()
    },
    **{
        name: partial(_binary, op)
        for name, op in {
            "Add": "add",
            "Sub": "sub",
            "Mul": "mul",
            "Div": "div",
            "Greater": "gt",
            "GreaterOrEqual": "ge",
            "Less": "lt",
            "LessOrEqual": "le",
            "Equal": "eq",
            "And": "logical_and",
            "Or": "logical_or",
            "Xor": "logical_xor",
        }.items()
    },
    **{
        name: partial(_chain, op)
        for name, op in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items()
    },
    "Pow": _power,
    "Mod": _modulo,
    "Clip": _clip,
    "Where": _choice,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Identity": _same,
    "Dropout": _same,
}
