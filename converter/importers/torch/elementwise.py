"""Operators that work element by element: arithmetic, activations, comparisons, quantizers.

Each is first understood as a function of the tensor that its operands were made from
(``torch_values.Fact``). What that function is decides which node is written: a quantizer, a PReLU
or a clamp of that tensor; if it is none of these, the operator itself is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.arithmetic import ARITHMETIC
from phonebit.converter.importers.torch.broken_lines import broken_line, fact_of
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.curves import Operands
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.functions import (
    function_of_one_tensor,
    function_of_unrounded,
)
from phonebit.converter.importers.torch.piecewise_functions import Pieces
from phonebit.converter.importers.torch.pointwise import affine, write_pieces
from phonebit.converter.importers.torch.powers import POWERS
from phonebit.converter.importers.torch.tracked_tensors import BrokenLine, Context, Fact, Value
from phonebit.converter.importers.torch.uniform_quantizers import MANY_THRESHOLDS, write_uniform

QUANTIZERS: Final = frozenset(
    {"sign", "sgn", "round", "floor", "ceil", "trunc", "fix", "heaviside"}
    | {"gt", "ge", "lt", "le", "eq", "ne", "where", "masked_fill", "index_put"}
    | {"logical_and", "logical_or", "logical_xor", "logical_not"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "__and__", "__or__", "__xor__"}
    | {"abs", "pow", "floor_divide", "remainder", "fmod", "sqrt", "exp", "reciprocal", "square"}
)
"""What is understood where its result has few values, or is a multiple of its operand."""
COMPARISONS: Final = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
WRITERS: Final = ARITHMETIC | POWERS
ELEMENTWISE: Final = QUANTIZERS | frozenset(WRITERS)


def elementwise(context: Context, call: Call) -> Value:
    """Translates an element-wise call; its nodes are written when its result is needed.

    Raises:
        UnsupportedError: It writes to a part of a tensor that is no mask.
    """
    operands = _operands(context, call)
    depth = context.waiting(operands.values())
    if call.op in COMPARISONS:
        operands = _against_zero(context, call, operands)
    fact, line = function_of_one_tensor(call, operands), broken_line(call, operands)
    if line is not None and (fact is None or _is_between(line, fact.root)):
        fact = fact_of(line) or fact
    unrounded = cache(lambda: function_of_unrounded(call, operands))

    def emit() -> View:
        view = None
        try:
            if fact is not None and fact.pieces is not None:
                view = _many_levels(context, call, fact.pieces, unrounded) or write_pieces(
                    context, call, fact.root, fact.pieces
                )
            if view is None:
                view = _written(context, call, operands)
        except UnsupportedError as error:
            error.call = error.call or call
            raise
        context.emission.record(call, view)
        return view

    is_stepped = fact is not None and fact.stepped
    return Value(
        call.shape,
        call.dtype,
        emit=emit,
        fact=fact,
        is_shared=call.users > 1 and not is_stepped,
        unrounded=unrounded if is_stepped else None,
        depth=depth,
        line=line,
    )


def _is_between(line: BrokenLine, value: Value) -> bool:
    """Whether a value is made of the tensor that a line starts at."""
    return value is not line.root and value.as_line().root is line.root


def _against_zero(context: Context, call: Call, operands: Operands) -> Operands:
    """A comparison with one constant a channel as one of the difference, whose sign is exact."""
    arrays = {n: o for n, o in operands.items() if isinstance(o, np.ndarray)}
    constants = {n: o for n, o in arrays.items() if o.size > 1}
    if len(constants) != 1:
        return operands
    ((name, constant),) = constants.items()
    value = operands["other" if name == "self" else "self"]
    sign = -1 if name == "self" else 1

    def difference() -> View:
        where = f"{context.emission.name(call)}/difference"
        return affine(
            context, context.real(value), np.full(1, sign, np.float32), -sign * constant, where
        )

    return {
        "self": Value(call.shape, value.dtype, emit=difference),
        "other": np.zeros(1, np.float32),
    }


def _many_levels(
    context: Context, call: Call, pieces: Pieces, unrounded: Callable[[], Fact | None]
) -> View | None:
    """A quantizer that is better computed than compared, or None."""
    near = unrounded() if pieces.thresholds.size >= MANY_THRESHOLDS else None
    if near is None or near.pieces is None:
        return None
    return write_uniform(context, call, near.root, near.pieces)


def _written(context: Context, call: Call, operands: Operands) -> View:
    write = WRITERS.get(call.op)
    if write is None:
        raise UnsupportedError(
            "is supported only where a quantizer results: a few values, of one tensor whose range "
            "is limited (clamp it first)"
        )
    return write(context, call, operands)


def _operands(context: Context, call: Call) -> Operands:
    """Arguments with calls replaced by values or constant tensors; masks by ``where``."""
    given = dict(call.arguments)
    if call.op == "index_put":
        masks = given["indices"]
        if given.get("accumulate") or len(masks) != 1 or masks[0].shape != call.shape:
            raise UnsupportedError("assigns to a part of a tensor that is no mask of its shape")
        given = {"condition": masks[0], "self": given["values"], "other": given["self"]}
    elif call.op == "masked_fill":
        given = {"condition": given["mask"], "self": given["value"], "other": given["self"]}
    result: Operands = {}
    for name, argument in given.items():
        result[name] = _operand(context, argument) if isinstance(argument, Call) else argument
    return result


def _operand(context: Context, call: Call) -> Any:
    return context.constants.compact(call) if call.constant else context.operand(call)
