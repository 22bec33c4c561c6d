"""Operators that only move elements: PyTorch itself applies them to the elements' positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import Call, calls_in, replace_calls
from phonebit.converter.importers.torch.element_positions import (
    ZERO,
    View,
    hwc_of,
)
from phonebit.converter.importers.torch.layout import flattened, relayout
from phonebit.converter.importers.torch.pointwise import affine
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ops import Concat

Tensor = NDArray[Any]

JOINING: Final = frozenset(
    {"cat", "concat", "concatenate", "stack", "slice_scatter", "select_scatter", "diagonal_scatter"}
)
REARRANGING: Final = frozenset(
    {"view", "reshape", "_unsafe_view", "view_as", "reshape_as", "_reshape_alias"}
    | {"flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "broadcast_to"}
    | {"permute", "transpose", "t", "movedim", "moveaxis", "swapaxes", "swapdims", "numpy_T"}
    | {"diagonal"}
    | {"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "tensor_split", "unbind"}
    | {"flip", "roll", "repeat", "tile", "repeat_interleave", "index_select", "index"}
    | {"pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"}
    | {"upsample_nearest1d", "upsample_nearest2d"}
    | {"unfold", "im2col"}
    | JOINING
)


def rearrange(context: Context, call: Call) -> Any:
    """Any of ``REARRANGING``; splits return lists.

    Raises:
        UnsupportedError: Its indices depend on an input, or images of a batch are mixed.
    """
    return rearranged(context, call, call.arguments)


def rearranged(context: Context, call: Call, arguments: dict[str, Any]) -> Any:
    """``rearrange`` with other arguments than the call's own."""
    operands = list(dict.fromkeys(calls_in(list(arguments.values()))))
    views = {o: context.real(context.operand(o)) for o in operands if not o.constant}
    views = _one_value(context, call, views)
    base = next(iter(views.values()))

    def positions(operand: Call) -> Tensor:
        if operand in views:
            # Some operators know no integers; positions are exact in float64.
            return np.array(views[operand].indices, np.float64)
        return _constant_positions(context, call, operand)

    given = {name: replace_calls(value, positions) for name, value in arguments.items()}
    if call.op in ("pad", "constant_pad_nd"):
        given["value"] = ZERO if call["mode"] in (None, "constant") else None
    if call.op == "im2col":  # pads with 0, which is a position
        moved = call.apply({**given, "self": given["self"] - ZERO}) + ZERO
    elif call.op in ("view", "_unsafe_view"):  # not contiguous where a copy was dropped
        moved = given["self"].reshape(call.shape)
    else:
        moved = call.apply(given)
    quantized = all(view.quantized for view in views.values())
    results = [
        replace(base, indices=tensor.astype(np.int64), quantized=quantized)
        for tensor in (moved if isinstance(moved, list | tuple) else [moved])
    ]
    if isinstance(moved, list | tuple):
        return [Value(view.indices.shape, call.dtype, view) for view in results]
    return context.viewed(call, _with_constants(context, call, arguments, views, results[0]))


def _with_constants(
    context: Context, call: Call, arguments: dict[str, Any], views: dict[Call, View], view: View
) -> View:
    """A joined tensor with zeros in place of its constants, plus these."""
    if call.op not in JOINING:
        return view

    def number(operand: Call) -> Tensor:
        if operand in views:
            return np.zeros(views[operand].indices.shape, np.float32)
        tensor: Tensor = context.constants.value(operand)
        return tensor.astype(np.float32)

    constant = call.apply({name: replace_calls(v, number) for name, v in arguments.items()})
    return added(context, view, constant, context.emission.name(call))


def added(context: Context, view: View, constant: Tensor, name: str) -> View:
    """A tensor plus a constant of its shape, which is left out where it is 0."""
    if not constant.any():
        return view
    return affine(context, replace(view, quantized=False), np.ones(1, np.float32), constant, name)


def _constant_positions(context: Context, call: Call, operand: Call) -> Tensor:
    """Zeros for constants that are joined to a tensor; constant indices as they are."""
    tensor: Tensor = context.constants.value(operand)
    return np.full(tensor.shape, ZERO, np.float64) if call.op in JOINING else tensor


def _one_value(context: Context, call: Call, views: dict[Call, View]) -> dict[Call, View]:
    """The same tensors as views of one value; it is written, as a Concat, if there are several."""
    if len({view.value for view in views.values()}) <= 1:
        return views
    name = context.emission.name(call)
    parts = views
    if not _are_joinable(list(views.values())):
        axis = _joined_axis(call, list(views.values()))
        parts = {operand: _joinable(context, view, name, axis) for operand, view in views.items()}
    if len({part.hwc[:2] for part in parts.values()}) > 1:
        parts = {o: flattened(context.emission, p, f"{name}/operand") for o, p in parts.items()}
    total = sum(part.hwc[2] for part in parts.values())
    hwc = (*next(iter(parts.values())).hwc[:2], total)
    value = context.emission.emit(Concat(), [part.value for part in parts.values()], hwc, name)
    result, offset = {}, 0
    for operand, part in parts.items():
        channels = part.hwc[2]
        moved = part.indices // channels * total + offset + part.indices % channels
        indices = np.where(part.indices == ZERO, ZERO, moved)
        result[operand] = replace(part, value=value, hwc=hwc, indices=indices)
        offset += channels
    return result


def _are_joinable(views: list[View]) -> bool:
    """Whether they are maps of one size, in any arrangement."""
    return all(
        view.hwc[:2] == views[0].hwc[:2] and view.sample().ndim > 1 and view.is_bijective()
        for view in views
    )


def _joined_axis(call: Call, views: list[View]) -> int | None:
    """The axis that is to become the channels, if maps would differ in size otherwise."""
    shapes = [view.sample().shape for view in views]
    sizes = {hwc_of(shape, "channels_first")[:2] for shape in shapes}
    if len(sizes) == 1 or min(map(len, shapes)) < 2 or call.op.endswith(("stack", "scatter")):
        return None
    return int(call["dim"] or 0) % len(call.shape) - len(call.shape)


def _joinable(context: Context, view: View, name: str, axis: int | None) -> View:
    """A view of all of a value, of one pixel where the tensor has no pixels."""
    emission = context.emission
    if axis is not None:
        moved = replace(view, indices=np.moveaxis(view.indices, axis, -1))
        plain = relayout(emission, moved, "channels_last", f"{name}/operand")
        return replace(plain, indices=np.moveaxis(plain.indices, -1, axis))
    if view.sample().ndim <= 1:
        if view.is_bijective():
            return flattened(emission, view, f"{name}/operand")
        return relayout(emission, view, "channels_first", f"{name}/operand")
    plain = relayout(emission, view, "channels_first", f"{name}/operand")
    return plain
