"""Element-wise operators as nodes of their own, where they are no quantizer, PReLU or clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import (
    Layout,
    UnsupportedError,
    View,
    hwc_of,
)
from phonebit.converter.importers.torch.functions import bent
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.pointwise import (
    whole,
    with_channels,
    write,
    write_pieces,
    write_step,
)
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray, Window
from phonebit.converter.ops import Conv2D, Divide
from phonebit.converter.ops.epilogue import (
    FUNCTIONS,
    AddTensor,
    Clamp,
    MultiplyTensor,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Sigmoid

Tensor = NDArray[Any]
Operands = dict[str, Any]
"""By argument name: values of the network, constants as tensors, everything else as it is."""
Writer = Callable[[Context, Call, Operands], View]


def affine(context: Context, view: View, scale: Tensor, bias: Tensor, name: str) -> View:
    """Scales and shifts a tensor, which stays quantized if it was.

    Args:
        context: Receives the nodes.
        view: The tensor.
        scale: Broadcasts to the tensor's shape, or has one element.
        bias: Likewise.
        name: What the node is called.
    """
    quantized = view.quantized
    view, (scales, biases) = with_channels(context, view, [scale, bias], name)
    return write_step(context, view, ScaleBias(scales, biases), name, quantized=quantized)


def _number(value: float) -> Tensor:
    return np.full(1, value, np.float32)


def _sum(context: Context, call: Call, operands: Operands) -> View:
    """add, sub and rsub."""
    name = context.emission.name(call)
    first, second, alpha = operands["self"], operands["other"], operands.get("alpha") or 1
    if call.op == "rsub":
        first, second = second, first
    sign = 1.0 if call.op == "add" else -1.0
    if isinstance(first, Value) and isinstance(second, Value):
        view, other = context.real(first), context.real(second)
        if sign * alpha != 1:
            scale = _number(sign * alpha)
            other = affine(context, other, scale, _number(0), f"{name}/scaled")
        return _two_tensors(context, call, view, other, AddTensor)
    if isinstance(first, Value):
        bias = _constant(second) * (sign * alpha)
        return affine(context, context.real(first), _number(1), bias, name)
    return affine(context, context.real(second), _number(sign * alpha), _constant(first), name)


def _product(context: Context, call: Call, operands: Operands) -> View:
    first, second = operands["self"], operands["other"]
    if isinstance(first, Value) and isinstance(second, Value):
        view, other = context.real(first), context.real(second)
        return _two_tensors(context, call, view, other, MultiplyTensor)
    value, factor = (first, second) if isinstance(first, Value) else (second, first)
    name = context.emission.name(call)
    return affine(context, context.real(value), _constant(factor), _number(0), name)


def _quotient(context: Context, call: Call, operands: Operands) -> View:
    if operands.get("rounding_mode") is not None or isinstance(operands["other"], Value):
        raise UnsupportedError("divides by a tensor that depends on an input, or rounds")
    name = context.emission.name(call)
    view = context.real(operands["self"])
    quantized = view.quantized
    view, (divisor,) = with_channels(context, view, [_constant(operands["other"])], name)
    return write(context, view, Divide(divisor), name, quantized=quantized)


def _negative(context: Context, call: Call, operands: Operands) -> View:
    view = context.real(operands["self"])
    return affine(context, view, _number(-1), _number(0), context.emission.name(call))


def _constant(value: Any) -> Tensor:
    return value if hasattr(value, "dtype") else _number(float(value))


def _activation(context: Context, call: Call, operands: Operands) -> View:
    """Activations that consist of pieces, of their operand as it is."""
    pieces = bent(call, operands)
    values = [operand for operand in operands.values() if isinstance(operand, Value)]
    view = None
    if pieces is not None and len(values) == 1:
        view = write_pieces(context, call, values[0], pieces)
    if view is None:
        raise UnsupportedError("its limits or slopes are no constants for the tensor or channel")
    return view


def _function(context: Context, call: Call, operands: Operands) -> View:
    try:
        step = FUNCTIONS[call.op].of_call(call.arguments)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    name = context.emission.name(call)
    return write_step(context, whole(context, context.real(operands["self"]), name), step, name)


def _silu(context: Context, call: Call, operands: Operands) -> View:
    name = context.emission.name(call)
    view = whole(context, context.real(operands["self"]), name)
    gate = write_step(context, view, Sigmoid(), f"{name}/gate")
    return write_step(context, view, MultiplyTensor(1), name, gate.value)


def _hard_gate(context: Context, call: Call, operands: Operands) -> View:
    """min(max(x + 3, 0), 6) / 6, and for hardswish x times that before the division."""
    name = context.emission.name(call)
    view = whole(context, context.real(operands["self"]), name)
    channels = view.hwc[2]
    shift = ScaleBias(_full(1, channels), _full(3, channels))
    gate = write_step(context, view, shift, f"{name}/shift")
    gate = write_step(context, gate, Clamp(0.0, 6.0), f"{name}/clamp")
    if call.op == "hardswish":
        gate = write_step(context, gate, MultiplyTensor(1), f"{name}/product", view.value)
    return write(context, gate, Divide(_full(6, channels)), name)


def _full(value: float, channels: int) -> FloatArray:
    return np.full(channels, value, np.float32)


def _cast(context: Context, call: Call, operands: Operands) -> View:
    if call.dtype != "float32":
        raise UnsupportedError(f"casts to {call.dtype}; convert the network in float32 (.float())")
    return context.real(operands["self"])


def _choice(context: Context, call: Call, operands: Operands) -> View:
    """where(mask, a, b) as mask * a + (1 - mask) * b."""
    name = context.emission.name(call)
    if not isinstance(operands["condition"], Value):
        raise UnsupportedError("chooses by a constant mask")
    mask = context.real(operands["condition"])
    inverse = affine(context, mask, _number(-1), _number(1), f"{name}/inverse")
    chosen: list[View] = []
    for view, choice, suffix in (
        (mask, operands["self"], "chosen"),
        (inverse, operands["other"], "other"),
    ):
        if isinstance(choice, Value):
            part = _two_tensors(
                context, call, context.real(choice), view, MultiplyTensor, f"{name}/{suffix}"
            )
        else:
            part = affine(context, view, _constant(choice), _number(0), f"{name}/{suffix}")
        chosen.append(part)
    return _two_tensors(context, call, chosen[0], chosen[1], AddTensor)


def _two_tensors(
    context: Context,
    call: Call,
    first: View,
    second: View,
    step: type[AddTensor] | type[MultiplyTensor],
    name: str | None = None,
) -> View:
    """A sum or product of two tensors, one of which may have to be broadcast."""
    name = name or context.emission.name(call)
    if first.indices.shape != call.shape:
        first, second = second, first
    same = first.hwc == second.hwc and np.array_equal(first.indices, second.indices)
    if not (same and first.is_bijective()):
        first, second = _fitted(context, call, first, second, name)
    return write_step(context, first, step(1), name, second.value)


def _fitted(
    context: Context, call: Call, first: View, second: View, name: str
) -> tuple[View, View]:
    """Two tensors in one layout, the second one perhaps (1, 1, C)."""
    if first.indices.shape != call.shape:
        raise UnsupportedError("both operands are broadcast")
    second = _narrowed(second, first)
    layouts: tuple[Layout, ...] = ("channels_first", "channels_last")
    for layout in layouts:
        height, width, channels = hwc_of(first.sample().shape, layout)
        size = hwc_of(second.sample().shape, layout)
        if size not in (
            (height, width, channels),
            (1, 1, channels),
            (height, width, 1),
            (1, 1, 1),
        ):
            continue
        other = relayout(context.emission, second, layout, f"{name}/operand")
        if size[2] != channels:
            ones = Conv2D(np.ones((channels, 1, 1, 1), np.float32), Window((1, 1)))
            spread = context.emission.emit(
                ones, [other.value], (*size[:2], channels), f"{name}/broadcast"
            )
            other = other.with_value(spread)
        return relayout(context.emission, first, layout, name), other
    got = f"{first.indices.shape} and {second.indices.shape}"
    raise UnsupportedError(
        f"broadcasts tensors of shapes {got}; expected (N, C, H, W) and "
        "(N, C, 1, 1) or (N, 1, H, W)"
    )


def _narrowed(view: View, other: View) -> View:
    """Without the repetitions of an expand(), with as many axes as the other tensor."""
    from dataclasses import replace

    indices = view.indices.reshape(
        (1,) * (other.indices.ndim - view.indices.ndim) + view.indices.shape
    )
    for axis in range(1, indices.ndim):
        first = indices.take([0], axis=axis)
        if indices.shape[axis] > 1 and np.array_equal(
            np.broadcast_to(first, indices.shape), indices
        ):
            indices = first
    return replace(view, indices=indices)


ARITHMETIC: Final[dict[str, Writer]] = {
    **dict.fromkeys(("add", "sub", "rsub"), _sum),
    "mul": _product,
    "div": _quotient,
    "neg": _negative,
    **dict.fromkeys(("relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max"), _activation),
    **dict.fromkeys(("maximum", "minimum", "abs"), _activation),
    **dict.fromkeys(("prelu", "_prelu_kernel", "leaky_relu"), _activation),
    **dict.fromkeys(FUNCTIONS, _function),
    "silu": _silu,
    **dict.fromkeys(("hardsigmoid", "hardswish"), _hard_gate),
    **dict.fromkeys(("where", "masked_fill", "index_put"), _choice),
    **dict.fromkeys(("to", "_to_copy"), _cast),
}
