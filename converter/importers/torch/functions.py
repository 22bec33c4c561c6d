"""Element-wise calls as functions of one tensor: monotone curves, steps and pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import FLOATS, Call
from phonebit.converter.importers.torch.jumps import (
    LARGEST_KEY,
    Function,
    evaluate,
    jumps,
    keys_of,
)
from phonebit.converter.importers.torch.piecewise_functions import (
    Part,
    Pieces,
    clamped,
    combined,
    from_levels,
    mirrored,
    number_of,
    part_rule,
    two_slopes,
)
from phonebit.converter.importers.torch.program import CASTS
from phonebit.converter.importers.torch.tracked_tensors import Fact, Value
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.epilogue import FUNCTIONS

Tensor = NDArray[Any]

STEPS: Final = frozenset(
    {"sign", "sgn", "round", "floor", "ceil", "trunc", "fix", "heaviside", "gt", "ge", "lt", "le"}
)
MONOTONE: Final = (
    STEPS
    | {name for name, function in FUNCTIONS["torch"].items() if function.is_monotone}
    | {"add", "sub", "rsub", "mul", "div", "neg", "hardsigmoid", "selu", "celu"}
    | {"relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "maximum", "minimum"}
)
MASKED: Final = frozenset({"where", "masked_fill", "index_put"})
BENT_AT_ZERO: Final = frozenset({"abs", "prelu", "_prelu_kernel", "leaky_relu"})
EQUALITIES: Final = frozenset({"eq", "ne"})


def function_of_one_tensor(call: Call, operands: dict[str, Any]) -> Fact | None:
    """A call as a function of the one tensor that all its operands are functions of.

    Args:
        call: An element-wise call.
        operands: Its arguments by name: values, constant tensors and numbers; masks that are
            assigned through are written as ``where`` does.

    Returns:
        None if there is no such tensor, or no such function is known.
    """
    values = {name: value for name, value in operands.items() if isinstance(value, Value)}
    if any(value.shape != call.shape for value in values.values()):
        return None
    through = {name: value.as_function() for name, value in values.items()}
    fact = _fact(call, operands, through)
    if fact is not None:
        return fact
    return _fact(call, operands, {name: value.as_root() for name, value in values.items()})


def function_of_unrounded(call: Call, operands: dict[str, Any]) -> Fact | None:
    """Steps as a function of the last tensor that is none: what is rounded, as it is rounded."""
    facts = {}
    for name, value in operands.items():
        if isinstance(value, Value):
            fact = value.as_root() if value.unrounded is None else value.unrounded()
            if fact is None:
                return None
            facts[name] = fact
    return _fact(call, operands, facts)


def _fact(call: Call, operands: dict[str, Any], facts: dict[str, Fact]) -> Fact | None:
    """The call as a function, if its operands are these functions of one tensor."""
    root = next(iter(facts.values())).root
    if any(fact.root is not root for fact in facts.values()) or root.dtype != "float32":
        return None
    pieces = _pieces(call, operands, facts)
    function, breaks = _curve(call, operands, facts)
    stepped = _makes_steps(call) or all(fact.stepped for fact in facts.values())
    if pieces is None and function is not None and stepped:
        thresholds = jumps(function, breaks)
        pieces = None if thresholds is None else _levels(function, thresholds)
    levels = None if pieces is None else pieces.levels()
    if pieces is not None and levels is not None:
        breaks = tuple(map(float, pieces.thresholds))
        return Fact(root, _lookup(pieces.thresholds, levels), breaks, True, pieces)
    if function is None and pieces is None:
        return None
    return Fact(root, function, breaks, stepped and function is not None, pieces)


def _makes_steps(call: Call) -> bool:
    if call.op in CASTS:
        return call.dtype not in FLOATS
    return call.op in STEPS | EQUALITIES or call["rounding_mode"] is not None


def _curve(
    call: Call, operands: dict[str, Any], facts: dict[str, Fact]
) -> tuple[Function | None, tuple[float, ...]]:
    """The call as a function that is monotone between breaks, which it returns, too.

    At most one of its operands may be more than a few levels; numbers may join them.
    """
    constants = {key: value for key, value in operands.items() if _is_tensor(value)}
    curves = [name for name, f in facts.items() if f.pieces is None or f.pieces.levels() is None]
    functions = {name: fact.function for name, fact in facts.items() if fact.function is not None}
    if len(curves) > 1 or len(functions) < len(facts):
        return None, ()
    if any(tensor.size != 1 for tensor in constants.values()):
        return None, ()
    is_prelu = call.op in ("prelu", "_prelu_kernel")  # whose weight may not lose its axis
    numbers = {key: tensor.reshape((1,) if is_prelu else ()) for key, tensor in constants.items()}

    def function(x: Tensor) -> Tensor:
        computed = {name: inner(x) for name, inner in functions.items()}
        return applied(call, {**operands, **numbers, **computed})

    breaks = tuple(number for fact in facts.values() for number in fact.breaks)
    name = curves[0] if curves else next(iter(facts))
    if call.op in MONOTONE | MASKED and (call.op not in ("div", "heaviside") or name == "self"):
        return function, breaks
    if len(facts) > 1 or call.op not in BENT_AT_ZERO | CASTS | EQUALITIES:
        return None, ()
    turn = (
        number_of(operands["other" if name == "self" else "self"]) if call.op in EQUALITIES else 0.0
    )
    inner = functions[name]
    reaches = jumps(lambda x: inner(x) >= turn, breaks)
    exceeds = jumps(lambda x: inner(x) > turn, breaks)
    if reaches is None or exceeds is None:
        return None, ()
    return function, (*breaks, *map(float, reaches), *map(float, exceeds))


def _lookup(thresholds: FloatArray, levels: Tensor) -> Function:
    """A step function."""
    return lambda x: levels[np.searchsorted(thresholds, x, side="right")]


def _levels(function: Function, thresholds: FloatArray) -> Pieces:
    """The steps between thresholds, by their middle numbers: thresholds next to 0 were moved."""
    keys = keys_of(thresholds)
    first = np.concatenate([[-LARGEST_KEY], keys])
    last = np.concatenate([keys - 1, [LARGEST_KEY]])
    return from_levels(thresholds, evaluate(function, (first + last) // 2))


def _pieces(call: Call, operands: dict[str, Any], facts: dict[str, Fact]) -> Pieces | None:
    """The call on pieces."""
    if any(fact.pieces is None for fact in facts.values()):
        return None
    if len(facts) == 1:
        activation = bent(call, operands)
        inner = next(iter(facts.values())).pieces
        only = inner.parts[0] if inner is not None and len(inner.parts) == 1 else None
        if activation is not None and only is not None and only.linear and only.factor.size == 1:
            factor = number_of(only.factor)
            return {1.0: activation, -1.0: mirrored(activation)}.get(factor)
    if call["alpha"] not in (None, 1) or call["rounding_mode"] is not None:
        return None
    named: dict[str, Pieces | Part] = {}
    for name, operand in operands.items():
        pieces = facts[name].pieces if name in facts else None
        if pieces is not None:
            named[name] = pieces
        elif _is_tensor(operand) or name in ("self", "other"):
            named[name] = Part(False, _as_tensor(operand))

    def function(factors: Sequence[Tensor]) -> Tensor:
        given = dict(zip(named, factors, strict=True))
        # Numbers stay numbers: they leave the result's type to the tensors.
        tensors = {n: f for n, f in given.items() if n in facts or _is_tensor(operands[n])}
        return applied(call, {**operands, **tensors})

    same_type = call.dtype == "float32"
    op = "where" if call.op in MASKED else "cast" if call.op in CASTS and same_type else call.op
    return combined(part_rule(op, function), list(named.values()))


def applied(call: Call, arguments: dict[str, Any]) -> Tensor:
    """Runs an element-wise call on tensors; assignment through masks is ``where``.

    A constant in front of a PReLU has no channels, so that its slopes are multiplied here.
    """
    if call.op in ("prelu", "_prelu_kernel") and arguments["weight"].size > 1:
        x: Tensor = arguments["self"]
        return np.where(x > 0, x, x * _slopes_of(call, arguments["weight"]))
    if call.op in ("masked_fill", "index_put"):
        chosen = np.asarray(arguments["self"], call.dtype)
        return np.where(arguments["condition"], chosen, arguments["other"])
    result: Tensor = call.apply(arguments)
    return result


def _is_tensor(operand: Any) -> bool:
    return hasattr(operand, "dtype") and not isinstance(operand, Value)


def _as_tensor(operand: Any) -> Tensor:
    return operand if _is_tensor(operand) else np.full(1, float(operand), np.float32)


def bent(call: Call, operands: dict[str, Any]) -> Pieces | None:
    """Activations of one tensor that consist of pieces."""
    if call.op == "abs":
        return two_slopes(np.full(1, -1, np.float32))
    if call.op == "leaky_relu":
        return two_slopes(np.full(1, float(operands["negative_slope"]), np.float32))
    if call.op in ("prelu", "_prelu_kernel"):
        slope = operands["weight"]
        if isinstance(slope, Value):
            return None
        return two_slopes(_slopes_of(call, slope))
    limits = _limits(call, operands)
    if limits is None or any(isinstance(limit, Value) for limit in limits):
        return None
    if any(_is_tensor(limit) and limit.size != 1 for limit in limits):
        return None
    return clamped(*(None if limit is None else number_of(limit) for limit in limits))


def _slopes_of(call: Call, weight: Tensor) -> Tensor:
    """A PReLU's slopes as they meet its operand, whose axis 1 are the channels."""
    if weight.size == 1:
        return weight.reshape(1)
    is_flat = call.op == "prelu"
    return weight.reshape(1, -1, *(1,) * (len(call.shape) - 2)) if is_flat else weight


def _limits(call: Call, operands: dict[str, Any]) -> tuple[Any, Any] | None:
    """What the result is limited to, from below and above."""
    if call.op == "relu":
        return 0.0, None
    if call.op == "relu6":
        return 0.0, 6.0
    if call.op == "hardtanh":
        return operands["min_val"], operands["max_val"]
    if call.op in ("clamp", "clamp_min", "clamp_max"):
        return operands.get("min"), operands.get("max")
    if call.op in ("maximum", "minimum"):
        limit = operands["self" if isinstance(operands["other"], Value) else "other"]
        return (limit, None) if call.op == "maximum" else (None, limit)
    return None
