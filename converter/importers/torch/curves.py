"""Functions of one tensor that are no pieces: activations and roots."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.pointwise import affine, whole, write, write_step
from phonebit.converter.importers.torch.tracked_tensors import Context
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Divide
from phonebit.converter.ops.epilogue import (
    FUNCTIONS,
    Clamp,
    EpilogueOp,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Elu, Exp, Log, Sigmoid, Softplus

Operands = dict[str, Any]
"""By argument name: values of the network, constants as tensors, everything else as it is."""


def write_steps(context: Context, view: View, steps: list[EpilogueOp], name: str) -> View:
    """Element-wise nodes, one per step; steps with a tensor read the first operand."""
    view = result = whole(context, view, name)
    for step in steps:
        others = [view.value] if isinstance(step, MultiplyTensor) else []
        last = step is steps[-1]
        result = write_step(
            context, result, step, name if last else f"{name}/{type(step).__name__}", *others
        )
    return result


def _function(context: Context, call: Call, operands: Operands) -> View:
    view = context.real(operands["self"])
    return write_steps(context, view, [_step(call)], context.emission.name(call))


def _step(call: Call, **changes: float) -> EpilogueOp:
    try:
        return FUNCTIONS["torch"][call.op].of_call({**call.arguments, **changes})
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _silu(context: Context, call: Call, operands: Operands) -> View:
    name = context.emission.name(call)
    view = whole(context, context.real(operands["self"]), name)
    gate = write_step(context, view, Sigmoid(), f"{name}/gate")
    return write_step(context, view, MultiplyTensor(1), name, gate.value)


def _elu(context: Context, call: Call, operands: Operands) -> View:
    """Elu, selu and celu: scale * x, below 0 scale * alpha * (exp(input_scale * x) - 1)."""
    name = context.emission.name(call)
    alpha = float(operands.get("alpha") or 1)
    scale, inner = float(operands.get("scale") or 1), float(operands.get("input_scale") or 1)
    if call.op == "selu":
        alpha, scale = 1.6732632423543772, 1.0507009873554805
    if call.op == "celu":
        inner = 1 / alpha
    view = whole(context, context.real(operands["self"]), name)
    if inner != 1:
        view = affine(context, view, _numbers(inner), _numbers(0), f"{name}/scaled")
    if (alpha, scale, inner) == (1, 1, 1):
        return write_step(context, view, Elu(), name)
    view = write_step(context, view, Elu(), f"{name}/elu")
    channels = view.hwc[2]
    slopes = PRelu(_numbers(alpha * scale, channels), _numbers(scale / inner, channels))
    return write_step(context, view, slopes, name)


def _log_sigmoid(context: Context, call: Call, operands: Operands) -> View:
    """-softplus(-x)."""
    name = context.emission.name(call)
    view = context.real(operands["self"])
    view = affine(context, view, _numbers(-1), _numbers(0), f"{name}/mirrored")
    view = write_step(context, view, Softplus(), f"{name}/softplus")
    return affine(context, view, _numbers(-1), _numbers(0), name)


def _softplus(context: Context, call: Call, operands: Operands) -> View:
    """softplus(beta x) / beta; the threshold is compared with beta x."""
    beta = float(operands.get("beta", 1))
    if beta == 1:
        return _function(context, call, operands)
    name = context.emission.name(call)
    view = affine(
        context, context.real(operands["self"]), _numbers(beta), _numbers(0), f"{name}/scaled"
    )
    view = write_step(context, view, _step(call, beta=1), f"{name}/softplus")
    return write(context, view, Divide(_numbers(beta, view.hwc[2])), name)


def _shifted(context: Context, call: Call, operands: Operands) -> View:
    """log1p, expm1, and powers and logarithms of other bases than e."""
    name = context.emission.name(call)
    function, before, after = SHIFTED[call.op]
    view = context.real(operands["self"])
    if before != (1, 0):
        scale, bias = map(_numbers, before)
        view = affine(context, view, scale, bias, f"{name}/operand")
    last = name if after == (1, 0) else f"{name}/function"
    view = write_steps(context, view, [function], last)
    if last == name:
        return view
    scale, bias = map(_numbers, after)
    return affine(context, view, scale, bias, name)


def _hard_gate(context: Context, call: Call, operands: Operands) -> View:
    """min(max(x + 3, 0), 6) / 6, and for hardswish x times that before the division."""
    name = context.emission.name(call)
    view = whole(context, context.real(operands["self"]), name)
    channels = view.hwc[2]
    shift = ScaleBias(_numbers(1, channels), _numbers(3, channels))
    gate = write_step(context, view, shift, f"{name}/shift")
    gate = write_step(context, gate, Clamp(0.0, 6.0), f"{name}/clamp")
    if call.op == "hardswish":
        gate = write_step(context, gate, MultiplyTensor(1), f"{name}/product", view.value)
    return write(context, gate, Divide(_numbers(6, channels)), name)


def _numbers(value: float, channels: int = 1) -> FloatArray:
    return np.full(channels, value, np.float32)


SHIFTED: Final[dict[str, tuple[EpilogueOp, tuple[float, float], tuple[float, float]]]] = {
    "log1p": (Log(), (1, 1), (1, 0)),
    "expm1": (Exp(), (1, 0), (1, -1)),
    "log2": (Log(), (1, 0), (1 / math.log(2), 0)),
    "log10": (Log(), (1, 0), (1 / math.log(10), 0)),
    "exp2": (Exp(), (math.log(2), 0), (1, 0)),
}
"""A function, and scale and bias of its operand and of its result."""
CURVES: Final = {
    **dict.fromkeys(SHIFTED, _shifted),
    **dict.fromkeys(FUNCTIONS["torch"], _function),
    "silu": _silu,
    "softplus": _softplus,
    "log_sigmoid": _log_sigmoid,
    **dict.fromkeys(("elu", "selu", "celu"), _elu),
    **dict.fromkeys(("hardsigmoid", "hardswish"), _hard_gate),
}
