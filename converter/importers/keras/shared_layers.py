"""Keras layers in ONNX's terms, one rule per kind of layer: see ``shared``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.graph import UnsupportedError, integers, number
from phonebit.converter.importers.keras.recurrent import RECURRENT
from phonebit.converter.importers.keras.shared import Layer, Rule, needs_map
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.ir import FloatArray

SIZES: Final = 1 << 16


def up_sampling(axes: int, layer: Layer) -> Call:
    """UpSampling1D, 2D and 3D: the nearest pixels, or between them."""
    call, scales = needs_map(layer, axes), integers(layer.config, "size", axes, 2)
    method = layer.config.get("interpolation", "nearest")
    if method == "nearest":
        coordinates = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return layer.onnx("Resize", call, scales=[1, *scales, 1], **coordinates)
    if method != "bilinear":
        raise UnsupportedError(f"interpolation={method!r}; expected 'nearest' or 'bilinear'")
    made = layer.onnx("Resize", layer.front(call), scales=[1, 1, *scales], mode="linear")
    return layer.back(made)


def amounts(value: Any, axes: int, what: str) -> list[tuple[int, int]]:
    """Keras's paddings and croppings: a number, one an axis, or a pair an axis."""
    values = value if isinstance(value, list | tuple) else [value] * axes
    if axes == 1 and len(values) == 2:
        values = [values]
    pairs = [tuple(v) if isinstance(v, list | tuple) else (v, v) for v in values]
    good = len(pairs) == axes and all(
        len(pair) == 2 and all(isinstance(n, int) and 0 <= n < SIZES for n in pair)
        for pair in pairs
    )
    if not good:
        raise UnsupportedError(f"{what}={value!r} is not an amount for each side of {axes} axes")
    return [(before, after) for before, after in pairs]


def cropping(axes: int, layer: Layer) -> Call:
    """Cropping1D, 2D and 3D."""
    call = needs_map(layer, axes)
    sides = amounts(layer.config.get("cropping", 1), axes, "cropping")
    ends = [size - after for size, (_, after) in zip(call.shape[1:], sides, strict=False)]
    starts = [before for before, _ in sides]
    if any(start >= end for start, end in zip(starts, ends, strict=True)):
        raise UnsupportedError(f"crops a map of {call.shape[1:-1]} to nothing")
    return layer.onnx("Slice", call, starts=starts, ends=ends, axes=list(range(1, axes + 1)))


def zero_padding(axes: int, layer: Layer) -> Call:
    """ZeroPadding1D, 2D and 3D."""
    call = needs_map(layer, axes)
    sides = amounts(layer.config.get("padding", 1), axes, "padding")
    before, after = ([0, 0, *(side[end] for side in sides)] for end in (0, 1))
    return layer.back(layer.onnx("Pad", layer.front(call), pads=[*before, *after]))


def permute(layer: Layer) -> Call:
    """Permute, whose axes count from 1 after the batch."""
    call, dims = layer.input, layer.config.get("dims")
    if not isinstance(dims, list) or sorted(dims) != list(range(1, len(call.shape))):
        raise UnsupportedError(f"dims={dims!r} of an input of {call.shape[1:]}")
    return layer.onnx("Transpose", call, perm=[0, *dims])


def repeat_vector(layer: Layer) -> Call:
    """RepeatVector: (C) n times, as (n, C)."""
    (count,) = integers(layer.config, "n", 1, 0)
    row = layer.onnx("Unsqueeze", layer.input, axes=[1])
    return layer.onnx("Expand", row, [1, count, row.shape[2]])


def merged(op: str, layer: Layer) -> Call:
    """A merging layer. Operands of fewer axes get axes of one after the batch, as Keras does."""
    if len(layer.inputs) < 2:
        raise UnsupportedError(f"called with {len(layer.inputs)} tensors, expected at least two")
    rank = max(len(call.shape) for call in layer.inputs)
    calls = [
        layer.onnx("Unsqueeze", call, axes=list(range(1, rank - len(call.shape) + 1)))
        for call in layer.inputs
    ]
    result, *others = calls
    for other in others:
        result = layer.onnx(op, result, other)
    return result


def average(layer: Layer) -> Call:
    """Average: the sum, divided by the number of operands."""
    return layer.onnx("Div", merged("Add", layer), float(len(layer.inputs)))


def concatenate(layer: Layer) -> Call:
    """Concatenate, along any axis."""
    (axis,) = layer.axes(layer.config.get("axis", -1), len(layer.inputs[0].shape))
    return layer.onnx("Concat", *layer.inputs, axis=axis)


def softmax(layer: Layer) -> Call:
    """Softmax along any axis."""
    (axis,) = layer.axes(layer.config.get("axis", -1), len(layer.input.shape))
    return layer.onnx("Softmax", layer.input, axis=axis)


def _along(axes: list[int], shape: tuple[int, ...], array: FloatArray) -> FloatArray:
    """Numbers for some axes of a tensor, so that they meet it."""
    return array.reshape([size if axis in axes else 1 for axis, size in enumerate(shape)])


def normalization(layer: Layer) -> Call:
    """Normalization: (x - mean) / max(sqrt(variance), 1e-7), as given or as adapted."""
    call, config = layer.input, layer.config
    axis = config.get("axis", -1)
    axes = [] if axis is None else sorted(layer.axes(axis, len(call.shape)))
    kept = tuple(call.shape[a] for a in axes)
    given = [config.get(key) for key in ("mean", "variance")]
    if None in given:
        mean, variance = (layer.weight(key, kept) for key in ("mean", "variance"))
    else:
        mean, variance = (np.asarray(numbers, np.float32) for numbers in given)
        if any(math.prod(array.shape) not in (1, math.prod(kept)) for array in (mean, variance)):
            raise UnsupportedError(f"mean and variance of shapes {mean.shape}, {variance.shape}")
        sizes = kept or (1,)
        mean, variance = (np.resize(array, sizes) for array in (mean, variance))
    deviation = np.maximum(np.sqrt(variance), np.float32(1e-7))
    mean, deviation = (_along(axes, call.shape, array) for array in (mean, deviation))
    if config.get("invert"):
        return layer.onnx("Add", layer.onnx("Mul", call, deviation), mean)
    return layer.onnx("Div", layer.onnx("Sub", call, mean), deviation)


def _scale_and_shift(layer: Layer, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    scale, center = layer.config.get("scale", True), layer.config.get("center", True)
    gamma = layer.weight("gamma", shape) if scale else np.ones(shape, np.float32)
    beta = layer.weight("beta", shape) if center else np.zeros(shape, np.float32)
    return gamma, beta


def layer_normalization(layer: Layer) -> Call:
    """LayerNormalization over any axes, which become the last ones."""
    if layer.config.get("rms_scaling"):
        raise UnsupportedError("rms_scaling=True is not supported")
    call, rank = layer.input, len(layer.input.shape)
    axes = sorted(layer.axes(layer.config.get("axis", -1), rank))
    order = [*(a for a in range(rank) if a not in axes), *axes]
    gamma, beta = _scale_and_shift(layer, tuple(call.shape[a] for a in axes))
    epsilon = number(layer.config.get("epsilon", 1e-3), "epsilon")
    moved = layer.onnx("Transpose", call, perm=order)
    first = rank - len(axes)
    made = layer.onnx("LayerNormalization", moved, gamma, beta, axis=first, epsilon=epsilon)
    return layer.onnx("Transpose", made, perm=np.argsort(order).tolist())


def group_normalization(layer: Layer) -> Call:
    """GroupNormalization: over the pixels and the channels of a group."""
    call, rank = layer.input, len(layer.input.shape)
    if layer.axes(layer.config.get("axis", -1), rank) != [rank - 1]:
        raise UnsupportedError(f"axis={layer.config.get('axis')}; expected the last axis")
    channels = call.shape[-1]
    groups = layer.config.get("groups", 32)
    groups = channels if groups == -1 else groups
    gamma, beta = _scale_and_shift(layer, (channels,))
    options = {
        "num_groups": groups,
        "epsilon": number(layer.config.get("epsilon", 1e-3), "epsilon"),
    }
    return layer.back(layer.onnx("GroupNormalization", layer.front(call), gamma, beta, **options))


def unit_normalization(layer: Layer) -> Call:
    """UnitNormalization: division by the length along some axes."""
    axes = layer.axes(layer.config.get("axis", -1), len(layer.input.shape))
    squares = layer.onnx("ReduceSumSquare", layer.input, axes=axes, keepdims=1)
    length = layer.onnx("Sqrt", layer.onnx("Clip", squares, min=1e-12))
    return layer.onnx("Div", layer.input, length)


def embedding(layer: Layer) -> Call:
    """Embedding: rows of a table."""
    if layer.config.get("mask_zero"):
        raise UnsupportedError("mask_zero=True: later layers would leave out steps")
    sizes = [integers(layer.config, key, 1, 0)[0] for key in ("input_dim", "output_dim")]
    table = layer.weight("embeddings", (sizes[0], sizes[1]))
    call = layer.input
    if call.dtype == "float32":  # Keras truncates; a float input of an Embedding has whole numbers
        call.dtype = "int64"
    return layer.onnx("Gather", table, call, axis=0)


def function(op: str, layer: Layer, **attributes: Any) -> Call:
    """One of ONNX's operators of the inputs, in order."""
    return layer.onnx(op, *layer.inputs, **attributes)


SHARED: Final[dict[str, Rule]] = {
    "Average": average,
    "Cropping1D": partial(cropping, 1),
    "Cropping2D": partial(cropping, 2),
    "Cropping3D": partial(cropping, 3),
    "Embedding": embedding,
    "GroupNormalization": group_normalization,
    "LayerNormalization": layer_normalization,
    "Maximum": partial(merged, "Max"),
    "Minimum": partial(merged, "Min"),
    "Normalization": normalization,
    "Permute": permute,
    "RepeatVector": repeat_vector,
    "UnitNormalization": unit_normalization,
    "UpSampling1D": partial(up_sampling, 1),
    "UpSampling2D": partial(up_sampling, 2),
    "UpSampling3D": partial(up_sampling, 3),
    "ZeroPadding1D": partial(zero_padding, 1),
    "ZeroPadding2D": partial(zero_padding, 2),
    "ZeroPadding3D": partial(zero_padding, 3),
    **RECURRENT,
}
"""Rules by the names of Keras's classes."""
ACTIVATIONS: Final[dict[str, Rule]] = {
    "celu": partial(function, "Celu"),
    "hard_silu": partial(function, "HardSwish"),
    "hard_swish": partial(function, "HardSwish"),
    "log_softmax": partial(function, "LogSoftmax"),
    "mish": partial(function, "Mish"),
    "selu": partial(function, "Selu"),
    "softsign": partial(function, "Softsign"),
}
"""Rules by the names of Keras's activations."""
