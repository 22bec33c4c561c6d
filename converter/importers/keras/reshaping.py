"""Functions that give the same elements another shape."""

from __future__ import annotations

import math
from typing import Any

from phonebit.converter.importers.keras.graph import (
    MAX_AXES,
    LayerContext,
    Tensor,
    UnsupportedError,
    tensors,
)
from phonebit.converter.ops import Reshape

Arguments = dict[str, Any]


def real_tensor(ctx: LayerContext, value: Any, inner: str = "cast") -> Tensor:
    """The only tensor of an argument, as real numbers or bits."""
    found = tensors(value)
    if len(found) != 1:
        raise UnsupportedError(f"called with {len(found)} tensors, expected one")
    return ctx.real(found[0], inner)


def reshape(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """tf.reshape: the batch is the first axis and must stay, written as -1."""
    x = real_tensor(ctx, arguments.get("x"))
    shape = arguments.get("shape", arguments.get("newshape"))
    return reshaped(ctx, x, shape[1:] if isinstance(shape, list) else shape)


def expand_dims(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """A new axis of one, after the batch."""
    x, axis = real_tensor(ctx, arguments.get("x")), arguments.get("axis")
    rank = len(x.shape) + 2
    if not isinstance(axis, int) or not -rank <= axis < rank or axis % rank == 0:
        raise UnsupportedError(f"axis={axis!r}")
    shape = list(x.shape)
    shape.insert(axis % rank - 1, 1)
    return reshaped(ctx, x, shape)


def squeeze(ctx: LayerContext, arguments: Arguments) -> Tensor:
    """Without the given axes, which have one element."""
    x = real_tensor(ctx, arguments.get("x"))
    axis: Any = arguments.get("axis")
    rank = len(x.shape) + 1
    axes = {a % rank for a in (axis if isinstance(axis, list) else [axis])}
    if 0 in axes or any(x.shape[a - 1] != 1 for a in axes):
        raise UnsupportedError(f"squeezes axis {axis!r} of {('batch', *x.shape)}")
    return reshaped(ctx, x, [n for a, n in enumerate(x.shape, start=1) if a not in axes])


def reshaped(ctx: LayerContext, x: Tensor, shape: object) -> Tensor:
    """Emits a reshape to a Keras shape without the batch, of which one axis may be -1."""
    if not isinstance(shape, list | tuple) or not all(isinstance(n, int) for n in shape):
        raise UnsupportedError(f"reshapes to {shape!r}; expected a list of integers")
    sizes, total = list(shape), math.prod(x.shape)
    known = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        sizes[sizes.index(-1)] = total // known
    if not 1 <= len(sizes) <= MAX_AXES or math.prod(sizes) != total or min(sizes) < 1:
        raise UnsupportedError(
            f"reshapes {('batch', *x.shape)} to {('batch', *shape)}; the first axis must stay the "
            f"batch, and 1 to {MAX_AXES} others follow it"
        )
    result = Tensor(x.value, tuple(sizes))
    return ctx.emit(Reshape(result.hwc), [x], result.shape, dtype=x.dtype)
