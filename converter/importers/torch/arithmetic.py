"""Element-wise operators as nodes of their own, where they are no quantizer, PReLU or clamp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.curves import CURVES, Operands, write_steps
from phonebit.converter.importers.torch.element_positions import (
    ZERO,
    Layout,
    UnsupportedError,
    View,
    hwc_of,
)
from phonebit.converter.importers.torch.functions import bent
from phonebit.converter.importers.torch.layout import own_layout, relayout
from phonebit.converter.importers.torch.pointwise import (
    affine,
    with_channels,
    write,
    write_pieces,
    write_step,
)
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Window
from phonebit.converter.ops import Concat, Conv2D, Divide, MaxPool2D, Reshape
from phonebit.converter.ops.epilogue import AddTensor, MultiplyTensor
from phonebit.converter.ops.epilogue.functions import Reciprocal

Tensor = NDArray[Any]
Writer = Callable[[Context, Call, Operands], View]


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
        return two_tensors(context, view, other, AddTensor, name)
    if isinstance(first, Value):
        bias = _constant(second) * (sign * alpha)
        return affine(context, context.real(first), _number(1), bias, name)
    return affine(context, context.real(second), _number(sign * alpha), _constant(first), name)


def _product(context: Context, call: Call, operands: Operands) -> View:
    first, second, name = operands["self"], operands["other"], context.emission.name(call)
    if isinstance(first, Value) and isinstance(second, Value):
        view, other = context.real(first), context.real(second)
        return two_tensors(context, view, other, MultiplyTensor, name)
    value, factor = (first, second) if isinstance(first, Value) else (second, first)
    return affine(context, context.real(value), _constant(factor), _number(0), name)


def _quotient(context: Context, call: Call, operands: Operands) -> View:
    """Division by a constant, or multiplication by a tensor's reciprocal."""
    if operands.get("rounding_mode") is not None:
        raise UnsupportedError("divides and rounds")
    name = context.emission.name(call)
    value, divisor = operands["self"], operands["other"]
    if isinstance(divisor, Value):
        divisor = context.real(divisor)
        divisor = write_steps(
            context, _narrowed(divisor, divisor), [Reciprocal()], f"{name}/reciprocal"
        )
        if isinstance(value, Value):
            return two_tensors(context, context.real(value), divisor, MultiplyTensor, name)
        return affine(context, divisor, _constant(value), _number(0), name)
    view = context.real(value)
    quantized = view.quantized
    view, (divisor,) = with_channels(context, view, [_constant(divisor)], name)
    return write(context, view, Divide(divisor), name, quantized=quantized)


def _negative(context: Context, call: Call, operands: Operands) -> View:
    return _mirrored(context, context.real(operands["self"]), context.emission.name(call))


def _constant(value: Any) -> Tensor:
    return value if hasattr(value, "dtype") else _number(float(value))


def _activation(context: Context, call: Call, operands: Operands) -> View:
    """Activations that consist of pieces, of their operand as it is."""
    pieces = bent(call, operands)
    values = [operand for operand in operands.values() if isinstance(operand, Value)]
    if call.op in ("maximum", "minimum") and len(values) == 2:
        return _extremes(context, call, *map(context.real, values))
    view = None
    if pieces is not None and len(values) == 1:
        view = write_pieces(context, call, values[0], pieces)
    if view is None:
        raise UnsupportedError("its limits or slopes are no constants for the tensor or channel")
    return view


def _extremes(context: Context, call: Call, *views: View) -> View:
    """The larger or smaller ones of two tensors: a pool over both, side by side."""
    name = context.emission.name(call)
    views = tuple(_spread(view, call.shape) for view in views)
    is_minimum = call.op == "minimum"
    if is_minimum:
        views = tuple(_mirrored(context, view, f"{name}/mirrored") for view in views)
    emit, layout = context.emission.emit, own_layout(views[0])
    parts = [relayout(context.emission, view, layout, name) for view in views]
    height, width, channels = parts[0].hwc
    both = [part.value for part in parts]
    value = emit(Concat(), both, (height, width, 2 * channels), f"{name}/both")
    hwc = (height * width, 2, channels)
    value = emit(Reshape(hwc), [value], hwc, f"{name}/pairs")
    pool, hwc = MaxPool2D(Window((1, 2))), (height * width, 1, channels)
    value = emit(pool, [value], hwc, f"{name}/larger")
    where = f"{name}/map" if is_minimum else name
    result = parts[0].with_value(emit(Reshape(parts[0].hwc), [value], parts[0].hwc, where))
    return _mirrored(context, result, name) if is_minimum else result


def _mirrored(context: Context, view: View, name: str) -> View:
    return affine(context, view, _number(-1), _number(0), name)


def _cast(context: Context, call: Call, operands: Operands) -> View:
    if call.dtype != "float32":
        raise UnsupportedError(f"casts to {call.dtype}; convert the network in float32 (.float())")
    return context.real(operands["self"])


def _choice(context: Context, call: Call, operands: Operands) -> View:
    """where(mask, a, b) as mask * a + (1 - mask) * b."""
    if not isinstance(operands["condition"], Value):
        return _chosen_places(context, call, operands)
    name = context.emission.name(call)
    mask = context.real(operands["condition"])
    inverse = affine(context, mask, _number(-1), _number(1), f"{name}/inverse")
    chosen: list[View] = []
    for view, choice, suffix in (
        (mask, operands["self"], "chosen"),
        (inverse, operands["other"], "other"),
    ):
        if isinstance(choice, Value):
            part = two_tensors(
                context, context.real(choice), view, MultiplyTensor, f"{name}/{suffix}"
            )
        else:
            part = affine(context, view, _constant(choice), _number(0), f"{name}/{suffix}")
        chosen.append(part)
    return two_tensors(context, chosen[0], chosen[1], AddTensor, name)


def _chosen_places(context: Context, call: Call, operands: Operands) -> View:
    """where() with a constant mask: index arithmetic, then a sum unless one choice is 0."""
    name = context.emission.name(call)
    mask = np.broadcast_to(np.asarray(operands["condition"], np.bool_), call.shape)
    views, constant = [], np.zeros(1, np.float32)
    for places, choice in ((mask, operands["self"]), (~mask, operands["other"])):
        if isinstance(choice, Value):
            view = context.real(choice)
            indices = np.where(places, np.broadcast_to(view.indices, call.shape), ZERO)
            views.append(replace(view, indices=indices, quantized=False))
        else:
            constant = constant + np.where(places, _constant(choice), np.float32(0))
    if len(views) == 2:
        return two_tensors(context, views[0], views[1], AddTensor, name)
    return affine(context, views[0], _number(1), constant, name) if constant.any() else views[0]


def two_tensors(
    context: Context,
    first: View,
    second: View,
    step: type[AddTensor] | type[MultiplyTensor],
    name: str,
) -> View:
    """A sum or product of two tensors, one of which may have to be broadcast."""
    shape = np.broadcast_shapes(first.indices.shape, second.indices.shape)
    if first.indices.shape != shape:
        first, second = second, first
    if first.indices.shape != shape:
        first = _spread(first, shape)
    same = first.hwc == second.hwc and np.array_equal(first.indices, second.indices)
    if not (same and first.is_bijective()):
        first, second = _fitted(context, first, second, name)
    return write_step(context, first, step(1), name, second.value)


def _fitted(context: Context, first: View, second: View, name: str) -> tuple[View, View]:
    """Two tensors in one layout, the second one perhaps (1, 1, C).

    One number per channel or pixel is read as it is; anything else is repeated.
    """
    second = _narrowed(second, first)
    layouts: tuple[Layout, ...] = (own_layout(first), "channels_first", "channels_last")
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
    repeated = _spread(second, first.indices.shape)
    return (
        relayout(context.emission, first, layouts[0], name),
        relayout(context.emission, repeated, layouts[0], f"{name}/operand"),
    )


def _spread(view: View, shape: tuple[int, ...]) -> View:
    """A tensor with all the repetitions that make it as large as another."""
    return replace(view, indices=np.broadcast_to(view.indices, shape))


def _narrowed(view: View, other: View) -> View:
    """Without the repetitions of an expand(), with as many axes as the other tensor."""
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
    **CURVES,
    **dict.fromkeys(("where", "masked_fill", "index_put"), _choice),
    **dict.fromkeys(("to", "_to_copy"), _cast),
}
