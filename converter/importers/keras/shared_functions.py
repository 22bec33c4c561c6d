"""Recorded functions in ONNX's terms, one rule per function: see ``shared``."""

from __future__ import annotations

from functools import partial
from typing import Final

from phonebit.converter.importers.keras.graph import UnsupportedError, number
from phonebit.converter.importers.keras.shared import Layer, Rule
from phonebit.converter.importers.keras.shared_moving import (
    axes_of,
    begin_and_size,
    blocks,
    flat,
    gather,
    get_item,
    move_axis,
    pad,
    repeat,
    resize,
    reverse,
    split,
    stack,
    swap_axes,
    tensor_of,
    tile,
    transpose,
    unstack,
)
from phonebit.converter.importers.torch.calls import Call


def reduced(op: str, layer: Layer) -> Call:
    """A mean, a sum or an extreme along some axes."""
    call = tensor_of(layer, "x")
    keep = int(bool(layer.argument("keepdims", default=False)))
    return layer.onnx(op, call, axes=axes_of(layer, call), keepdims=keep)


def variance(root: bool, layer: Layer) -> Call:
    """The mean square of the distance from the mean, or its root."""
    call = tensor_of(layer, "x")
    axes = axes_of(layer, call)
    mean = layer.onnx("ReduceMean", call, axes=axes, keepdims=1)
    distance = layer.onnx("Sub", call, mean)
    squares = layer.onnx("Mul", distance, distance)
    keep = int(bool(layer.argument("keepdims", default=False)))
    result = layer.onnx("ReduceMean", squares, axes=axes, keepdims=keep)
    return layer.onnx("Sqrt", result) if root else result


def of_two(op: str, layer: Layer) -> Call:
    """An operator of two operands of equally many axes, or of a tensor and numbers."""
    x, y = layer.argument("x"), layer.argument("y")
    calls = [each for each in (x, y) if isinstance(each, Call)]
    if len(calls) == 2 and len(x.shape) != len(y.shape):  # channels would meet the batch
        raise UnsupportedError(f"operands of shapes {x.shape[1:]} and {y.shape[1:]}")
    return layer.onnx(op, x, y)


def squared_difference(layer: Layer) -> Call:
    """(x - y) squared."""
    distance = of_two("Sub", layer)
    return layer.onnx("Mul", distance, distance)


def matmul(layer: Layer) -> Call:
    """tf.matmul and keras.ops.matmul."""
    factors = []
    for name, flags in (("a", ("transpose_a", "adjoint_a")), ("b", ("transpose_b", "adjoint_b"))):
        call = tensor_of(layer, name)
        rank = len(call.shape)
        if any(layer.argument(flag) for flag in flags):
            call = layer.onnx("Transpose", call, perm=[*range(rank - 2), rank - 1, rank - 2])
        factors.append(call)
    return layer.onnx("MatMul", *factors)


def reciprocal_root(layer: Layer) -> Call:
    """1 / sqrt(x)."""
    return layer.onnx("Reciprocal", layer.onnx("Sqrt", tensor_of(layer, "x")))


def of_unit_length(layer: Layer) -> Call:
    """Division by the length along some axes, as tf.math.l2_normalize has it."""
    call = tensor_of(layer, "x")
    if layer.argument("order", default=2) != 2:
        raise UnsupportedError(f"order={layer.argument('order')}; expected 2")
    squares = layer.onnx("ReduceSumSquare", call, axes=axes_of(layer, call, -1), keepdims=1)
    minimum = number(layer.argument("epsilon") or 1e-12, "epsilon")
    length = layer.onnx("Sqrt", layer.onnx("Clip", squares, min=minimum))
    return layer.onnx("Div", call, length)


def of_one(op: str, layer: Layer) -> Call:
    """An operator of one tensor."""
    return layer.onnx(op, tensor_of(layer, "x"))


REDUCING: Final = {
    "ReduceMax": ("math.reduce_max", "Max", "Amax"),
    "ReduceMin": ("math.reduce_min", "Min", "Amin"),
    "ReduceMean": ("math.reduce_mean", "Mean"),
    "ReduceSum": ("math.reduce_sum", "Sum"),
}
_X: Final = ("x",)
ROWS: Final[tuple[tuple[Rule, tuple[str, ...], tuple[str, ...]], ...]] = (
    (get_item, ("x", "key"), ("__operators__.getitem", "GetItem")),
    (begin_and_size, ("x", "begin", "size"), ("slice",)),
    (transpose, ("x", "perm"), ("compat.v1.transpose", "transpose", "Transpose")),
    (swap_axes, _X, ("Swapaxes",)),
    (move_axis, _X, ("Moveaxis",)),
    (split, ("x", "num_or_size_splits", "axis"), ("split", "Split")),
    (unstack, _X, ("unstack", "Unstack")),
    (gather, ("x", "indices"), ("compat.v1.gather", "Take")),
    (stack, ("values", "axis"), ("stack", "Stack")),
    (tile, ("x", "multiples"), ("tile", "Tile")),
    (repeat, ("x", "repeats"), ("repeat", "Repeat")),
    (reverse, ("x", "axis"), ("reverse", "Flip")),
    (pad, ("x", "paddings"), ("compat.v1.pad",)),
    (pad, ("x", "constant_values"), ("Pad",)),
    (partial(blocks, "DepthToSpace"), ("x", "block_size"), ("nn.depth_to_space",)),
    (partial(blocks, "SpaceToDepth"), ("x", "block_size"), ("nn.space_to_depth",)),
    (resize, ("x", "size"), ("image.resize", "Resize")),
    (partial(variance, True), ("x", "axis"), ("math.reduce_std", "Std")),
    (partial(variance, False), ("x", "axis"), ("math.reduce_variance", "Var")),
    (squared_difference, ("x", "y"), ("math.squared_difference", "SquaredDifference")),
    (partial(of_two, "Pow"), ("x", "y"), ("math.pow", "Power")),
    (matmul, ("a", "b"), ("linalg.matmul", "Matmul")),
    (reciprocal_root, _X, ("math.rsqrt", "Rsqrt")),
    (of_unit_length, ("x", "axis"), ("math.l2_normalize", "Normalize", "UnitNormalize")),
    (flat, _X, ("keras.backend.batch_flatten",)),
    *((partial(reduced, op), ("x", "axis", "keepdims"), names) for op, names in REDUCING.items()),
)
"""A rule, its parameters in the order of positional arguments, and how it is spelled."""
