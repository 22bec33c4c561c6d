"""Powers: any tensor to a number; a positive base to a tensor or to numbers of each channel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.arithmetic import Writer, two_tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.curves import Operands, write_steps
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.piecewise_functions import number_of
from phonebit.converter.importers.torch.pointwise import affine, whole
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ops.epilogue import EpilogueOp, MultiplyTensor, ScaleBias
from phonebit.converter.ops.epilogue.functions import Exp, Log, Reciprocal, Sqrt

MAX_FACTORS: Final = 16
"""Of a product in place of a power."""
EXPONENTS: Final = {"square": 2.0, "rsqrt": -0.5}


def _power(context: Context, call: Call, operands: Operands) -> View:
    base = operands["self"]
    exponent: Any = operands.get("exponent", EXPONENTS.get(call.op))
    if isinstance(exponent, Value) or np.size(exponent) > 1:
        return _to_tensor(context, call, base, exponent)
    name = context.emission.name(call)
    view = whole(context, context.real(base), name)
    return write_steps(context, view, _steps(number_of(exponent), view.hwc[2]), name)


def _steps(exponent: float, channels: int) -> list[EpilogueOp]:
    """x^|e| as x^fraction times x for each unit of |e|; factors are the operand itself.

    All factors are on one side of 1, so that none overflows where the power does not. Of a
    negative x only the powers to integers are numbers, which need no logarithm.
    """
    exponent = float(np.float32(exponent))
    factors, fraction = divmod(abs(exponent), 1)
    if exponent == 0 or not factors <= MAX_FACTORS:
        raise UnsupportedError(
            f"is a power to {exponent:g}; expected an exponent other than 0, up to {MAX_FACTORS}"
        )
    steps: list[EpilogueOp] = []
    if fraction == 0.5:
        steps = [Sqrt()]
    elif fraction:
        scale, bias = (np.full(channels, number, np.float32) for number in (fraction, 0))
        steps = [Log(), ScaleBias(scale, bias), Exp()]
    steps += [MultiplyTensor(1)] * (int(factors) - (not fraction))
    return [*steps, Reciprocal()] if exponent < 0 else steps


def _to_tensor(context: Context, call: Call, base: Any, exponent: Any) -> View:
    """exp(exponent * log(base))."""
    minimum = _minimum(base)
    if not (minimum > 0 or (minimum == 0 and _minimum(exponent) > 0)):
        raise UnsupportedError(
            "raises what may be 0 or negative to exponents that are not one number; expected a "
            "positive base: clamp it, or add a small number to its magnitude"
        )
    name = context.emission.name(call)
    zero = np.zeros(1, np.float32)
    if not isinstance(base, Value):
        logarithms = np.asarray(np.log(np.asarray(base, np.float64)), np.float32)
        product = affine(context, context.real(exponent), logarithms, zero, f"{name}/product")
    else:
        view = write_steps(context, context.real(base), [Log()], f"{name}/log")
        if isinstance(exponent, Value):
            other = context.real(exponent)
            product = two_tensors(context, view, other, MultiplyTensor, f"{name}/product")
        else:
            product = affine(context, view, exponent, zero, f"{name}/product")
    return write_steps(context, product, [Exp()], name)


def _minimum(operand: Any) -> float:
    """The smallest number that a tensor or constant is known to have."""
    return operand.limits()[0] if isinstance(operand, Value) else float(np.min(operand))


POWERS: Final[dict[str, Writer]] = dict.fromkeys(("pow", "square", "rsqrt"), _power)
