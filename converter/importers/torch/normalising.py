"""Normalisation by the statistics of each image: layer, group, instance and RMS norms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.arithmetic import two_tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.curves import write_steps
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.layers import plain_batch_norm
from phonebit.converter.importers.torch.layout import flattened, relayout
from phonebit.converter.importers.torch.pointwise import affine, write_step
from phonebit.converter.importers.torch.reducing import Axes, centred, reduced
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.epilogue import MultiplyTensor, ScaleBias
from phonebit.converter.ops.epilogue.functions import Reciprocal, Sqrt

FLOAT_EPSILON: Final = float(np.finfo(np.float32).eps)


def layer_norm(context: Context, call: Call) -> Value:
    """layer_norm and rms_norm, over the last axes."""
    view = context.real(context.operand(call["input"]))
    rank, count = view.sample().ndim, len(call["normalized_shape"])
    if count > rank:
        raise UnsupportedError("normalises the batch")
    return _normalised(context, call, view, set(range(rank - count, rank)))


def group_norm(context: Context, call: Call) -> Value:
    """group_norm: over pixels and the channels of a group."""
    name = context.emission.name(call)
    view = context.real(context.operand(call["input"]))
    view = relayout(context.emission, view, "channels_first", name)
    return _normalised(context, call, view, _pixels(view), int(call["num_groups"] or call["group"]))


def instance_norm(context: Context, call: Call) -> Value:
    """instance_norm: over pixels, unless it has stored statistics."""
    if not call["use_input_stats"]:
        return plain_batch_norm(context, call)
    view = context.real(context.operand(call["input"]))
    return _normalised(context, call, view, _pixels(view))


def _pixels(view: View) -> Axes:
    return set(range(1, view.sample().ndim))


def _normalised(
    context: Context, call: Call, view: View, axes: Axes, groups: int | None = None
) -> Value:
    """(x - mean) / sqrt(mean square of that + eps), times weight plus bias; rms: less no mean."""
    name = context.emission.name(call)

    def mean(of: View, what: str) -> View:
        where = f"{name}/{what}"
        if groups is None:
            return reduced(context, of, axes, "mean", where)
        of = reduced(context, of, axes, "mean", f"{where}_of_pixels") if axes else of
        return _of_groups(context, of, groups, where)

    if call.op != "rms_norm":
        view = centred(context, view, mean(view, "mean"), f"{name}/centred")
    squares = write_steps(context, view, [MultiplyTensor(1)], f"{name}/squares")
    variance = mean(squares, "variance")
    channels = variance.hwc[2]
    eps = FLOAT_EPSILON if call["eps"] is None else float(call["eps"])
    shift = ScaleBias(np.ones(channels, np.float32), np.full(channels, eps, np.float32))
    variance = write_step(context, variance, shift, f"{name}/eps")
    inverse = write_steps(context, variance, [Sqrt(), Reciprocal()], f"{name}/inverse")
    weight, bias = (_constant(context, call, key, view) for key in ("weight", "bias"))
    if weight is None and bias is None:
        return context.viewed(call, two_tensors(context, view, inverse, MultiplyTensor, name))
    view = two_tensors(context, view, inverse, MultiplyTensor, f"{name}/normal")
    scale = np.ones(1, np.float32) if weight is None else weight
    shift_by = np.zeros(1, np.float32) if bias is None else bias
    return context.viewed(call, affine(context, view, scale, shift_by, name))


def _constant(context: Context, call: Call, key: str, view: View) -> FloatArray | None:
    """A parameter as it meets the tensor: along the last axes, or along the channels."""
    if call[key] is None:
        return None
    array: FloatArray = context.constant(call[key], key)
    if call["normalized_shape"] is not None:
        return array
    return array.reshape(-1, *(1,) * (view.sample().ndim - 1))


def _of_groups(context: Context, view: View, groups: int, name: str) -> View:
    """In each channel the mean of its group; of the means of pixels."""
    shape, channels = view.indices.shape, view.hwc[2]
    if groups == channels:
        return view
    view = replace(view, indices=view.indices.reshape(context.batch, groups, -1))
    view = flattened(context.emission, reduced(context, view, {1}, "mean", name), name)
    return replace(view, indices=view.indices.repeat(channels // groups, 1).reshape(shape))


def with_statistics(context: Context, call: Call) -> list[Any]:
    """The two that return mean and deviation, too."""
    rule = layer_norm if call.op == "native_layer_norm" else group_norm
    return [rule(context, call), None, None]


NORMALISING: Final[dict[str, Any]] = {
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), with_statistics),
    **dict.fromkeys(("layer_norm", "rms_norm"), layer_norm),
    "group_norm": group_norm,
    "instance_norm": instance_norm,
}
"""Rules by the names of PyTorch's operators."""
