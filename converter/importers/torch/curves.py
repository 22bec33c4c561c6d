"""Functions of one tensor that are no pieces: activations, powers and roots."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.piecewise_functions import number_of
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
from phonebit.converter.ops.epilogue.functions import Elu, Reciprocal, Sigmoid, Softplus, Sqrt

Operands = dict[str, Any]
"""By argument name: values of the network, constants as tensors, everything else as it is."""
POWERS: Final[dict[float, list[EpilogueOp]]] = {
    1: [],
    2: [MultiplyTensor(1)],
    3: [MultiplyTensor(1), MultiplyTensor(1)],
    0.5: [Sqrt()],
    -0.5: [Sqrt(), Reciprocal()],
    -1: [Reciprocal()],
    -2: [MultiplyTensor(1), Reciprocal()],
}
"""The steps to a power; factors are the operand itself."""


def write_steps(context: Context, view: View, steps: list[EpilogueOp], name: str) -> View:
    """Element-wise nodes, one a step; steps with a tensor read the first operand."""
    view = result = whole(context, view, name)
    for step in steps:
        others = [view.value] if isinstance(step, MultiplyTensor) else []
        last = step is steps[-1]
        result = write_step(
            context, result, step, name if last else f"{name}/{type(step).__name__}", *others
        )
    return result


def _function(context: Context, call: Call, operands: Operands) -> View:
    try:
        step = FUNCTIONS[call.op].of_call(call.arguments)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    return write_steps(context, context.real(operands["self"]), [step], context.emission.name(call))


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


def _power(context: Context, call: Call, operands: Operands) -> View:
    exponent = operands.get("exponent", {"square": 2, "rsqrt": -0.5}.get(call.op))
    if isinstance(exponent, np.ndarray) and exponent.size == 1:
        exponent = number_of(exponent)
    steps = POWERS.get(exponent) if isinstance(exponent, int | float) else None
    view = operands["self"]
    if steps is None or isinstance(view, np.ndarray | int | float):
        known = ", ".join(f"{power:g}" for power in sorted(POWERS))
        raise UnsupportedError(f"is no power of a tensor with one of the exponents {known}")
    return write_steps(context, context.real(view), steps, context.emission.name(call))


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


CURVES: Final = {
    **dict.fromkeys(FUNCTIONS, _function),
    "silu": _silu,
    "log_sigmoid": _log_sigmoid,
    **dict.fromkeys(("elu", "selu", "celu"), _elu),
    **dict.fromkeys(("pow", "square", "rsqrt"), _power),
    **dict.fromkeys(("hardsigmoid", "hardswish"), _hard_gate),
}
