"""Transposed convolutions: an ordinary convolution for each phase of the output, side by side.

Along an axis element o of the result is the sum of x[i] w[k] over all i and k with
o + pad = stride i + k. With o + pad = stride q + r only the taps k = r + stride j have a part in
it: it is element q of a convolution of x with the kernel w[r + stride j], last tap first. So each
phase r has a kernel of its own: no zeros are multiplied, and binary kernels stay binary.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View, hwc_of
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.layers import convolution, pair_of, weighted
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Window
from phonebit.converter.ops import Concat, Conv2D


@dataclass(frozen=True)
class _Axis:
    """How the phases of one axis are computed.

    Attributes:
        count: Elements of the map of each phase.
        taps: Of the kernel of each phase.
        first: The place q of each phase's first element.
    """

    count: int
    taps: list[int]
    first: list[int]

    def pads(self, phase: int, size: int) -> tuple[int, int]:
        """What a phase's convolution pads a map of ``size`` elements with, in front and after."""
        first = self.first[phase]
        return self.taps[phase] - 1 - first, first + self.count - size

    def places(self, result: int, pad: int) -> tuple[Any, Any]:
        """The phase of each element of the result, and its place in the phase's map."""
        place, phase = np.divmod(np.arange(result) + pad, len(self.first))
        return phase, place - np.array(self.first)[phase]


def _axis(size: int, result: int, taps: int, stride: int, pad: int) -> _Axis | None:
    """The smallest maps that are equally large, with less padding than each kernel has taps."""
    shares = [-(-(taps - phase) // stride) for phase in range(stride)]
    for count in range(-(-result // stride), size + max(shares)):
        first = []
        for phase, share in enumerate(shares):
            begin, last = -(-(pad - phase) // stride), (result - 1 + pad - phase) // stride
            low = max(0, last - count + 1, size - count)
            high = min(share - 1, begin, size - count + share - 1)
            first += [high] if low <= high else []
        if len(first) == stride:
            return _Axis(count, shares, first)
    return None


def transposed_convolution(context: Context, call: Call) -> Value:
    """conv_transpose1d, conv_transpose2d and the general convolution that is transposed.

    Raises:
        UnsupportedError: It is three-dimensional, or pads its output by more than its input.
    """
    name = context.emission.name(call)
    weights = float_array(context.constant(call["weight"], "kernel"))
    count = weights.ndim - 2
    if count not in (1, 2) or len(call["input"].shape) != weights.ndim:
        raise UnsupportedError(f"a kernel of shape {weights.shape} on {call['input'].shape}")
    weights = weights[:, :, None, :] if count == 1 else weights
    strides, dilation = pair_of(call["stride"], count, 1), pair_of(call["dilation"], count, 1)
    pads = pair_of(call["padding"], count, 0)
    if dilation != (1, 1):
        weights = np.kron(weights, _corner(dilation))
    view = context.real(context.operand(call["input"]))
    view = relayout(context.emission, view, "channels_first", name)
    result = hwc_of(call.shape[1:], "channels_first")
    found = []
    for axis, (stride, pad) in enumerate(zip(strides, pads, strict=True)):
        size, taps = view.hwc[axis], weights.shape[2 + axis]
        plan = _axis(size, result[axis], taps, stride, pad)
        if plan is None:  # a tap of zeros makes the phases alike
            amounts = [(0, 0)] * 4
            amounts[2 + axis] = (0, -taps % stride)
            weights = np.pad(weights, amounts)
            plan = _axis(size, result[axis], weights.shape[2 + axis], stride, pad)
        if plan is None:
            raise UnsupportedError("pads its output more than its input")
        found.append(plan)
    rows, columns = found
    value, channels = _phases(context, call, view, weights, (rows, columns))
    row_phase, row = rows.places(result[0], pads[0])
    column_phase, column = columns.places(result[1], pads[1])
    chosen = channels[row_phase[:, None], column_phase].transpose(2, 0, 1)
    hwc = (rows.count, columns.count, channels.size)
    sample = (row[:, None] * columns.count + column) * channels.size + chosen
    images = np.arange(context.batch).reshape(-1, 1, 1, 1) * int(np.prod(hwc))
    return context.viewed(
        call, View(value, hwc, (sample + images).reshape(call.shape), context.batch)
    )


def _corner(dilation: tuple[int, int]) -> Any:
    corner = np.zeros(dilation, np.float32)
    corner[0, 0] = 1
    return corner


def _phases(
    context: Context, call: Call, view: View, weights: Any, axes: tuple[_Axis, _Axis]
) -> tuple[str, Any]:
    """The maps of all phases, and the channel of each (row phase, column phase, channel).

    Phases with as many taps at the same places are one convolution.
    """
    name, groups = context.emission.name(call), int(call["groups"])
    strides = [len(axis.first) for axis in axes]
    alike: dict[Any, list[tuple[int, int]]] = {}
    for phases in product(range(strides[0]), range(strides[1])):
        key = [(axis.first[r], axis.taps[r]) for axis, r in zip(axes, phases, strict=True)]
        alike.setdefault(tuple(key), []).append(phases)
    inner, outer = weights.shape[0] // groups, weights.shape[1]
    bias = np.zeros(groups * outer, np.float32)
    if call["bias"] is not None:
        bias = float_array(context.constant(call["bias"], "bias"))
    channels = np.empty((*strides, groups * outer), np.int64)
    values: list[str] = []
    total = 0
    for members in alike.values():
        parts = [weights[:, :, r :: strides[0], s :: strides[1]] for r, s in members]
        kernel = np.stack(parts)[..., ::-1, ::-1]
        kernel = kernel.reshape(len(members), groups, inner, *kernel.shape[2:])
        kernel = kernel.transpose(1, 0, 3, 4, 5, 2).reshape(-1, *kernel.shape[4:], inner)
        (top, bottom), (left, right) = (
            axis.pads(r, size) for axis, r, size in zip(axes, members[0], view.hwc, strict=False)
        )
        window = Window(kernel.shape[1:3], pads=(top, left, bottom, right))
        biases = np.repeat(bias.reshape(groups, 1, outer), len(members), axis=1).reshape(-1)
        op = Conv2D(np.ascontiguousarray(kernel), window, groups, bias=biases)
        where = name if len(alike) == 1 else f"{name}/phases"
        values.append(weighted(context, op, view, call["weight"], where))
        order = total + np.arange(len(biases)).reshape(groups, len(members), outer)
        for number, phases in enumerate(members):
            channels[phases] = order[:, number].reshape(-1)
        total += len(biases)
    if len(values) == 1:
        return values[0], channels
    hwc = (axes[0].count, axes[1].count, total)
    return context.emission.emit(Concat(), values, hwc, f"{name}/all_phases"), channels


def general(context: Context, call: Call) -> Value:
    """The one operator that other programs have for all convolutions."""
    return (transposed_convolution if call["transposed"] else convolution)(context, call)


CONVOLUTIONS: Final = {
    "convolution": general,
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), transposed_convolution),
}
"""Rules by the names of PyTorch's operators."""
