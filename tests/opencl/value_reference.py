"""Layers of real numbers as plain NumPy.

float32 arithmetic is NumPy's, one rounding an operation; only the fused multiply-add is built here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Layer:
    """Geometry of a layer; pairs are (vertical, horizontal), pads (top, left, bottom, right)."""

    size: tuple[int, int]
    in_c: int
    out_c: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    batch: int = 1

    @property
    def out_size(self) -> tuple[int, int]:
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        return (
            (self.size[0] + self.pads[0] + self.pads[2] - spans[0]) // self.stride[0] + 1,
            (self.size[1] + self.pads[1] + self.pads[3] - spans[1]) // self.stride[1] + 1,
        )

    @property
    def pixels(self) -> int:
        return self.batch * self.out_size[0] * self.out_size[1]

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return (self.batch, *self.out_size, self.out_c)

    def random(self, rng: np.random.Generator) -> Floats:
        """A random input map."""
        return rng.standard_normal((self.batch, *self.size, self.in_c), np.float32)

    def defines(self) -> dict[str, int | str]:
        (out_h, out_w), names = self.out_size, ("H", "W")
        values: dict[str, int | str] = {
            "IN_C": self.in_c,
            "IN_WORDS": ceil(self.in_c / 32),
            "OUT_C": self.out_c,
            "OUT_WORDS": ceil(self.out_c / 32),
            "PAD_TOP": self.pads[0],
            "PAD_LEFT": self.pads[1],
            "GROUPS": self.groups,
            "PADDED": int(not all_inside(self)),
            "ROW_CLASSES": 1,
            "COLUMN_CLASSES": 1,
        }
        for axis, name in enumerate(names):
            values[f"IN_{name}"] = self.size[axis]
            values[f"OUT_{name}"] = (out_h, out_w)[axis]
            values[f"KERNEL_{name}"] = self.kernel[axis]
            values[f"STRIDE_{name}"] = self.stride[axis]
            values[f"DILATION_{name}"] = self.dilation[axis]
        return values


def tap_places(layer: Layer, axis: int) -> NDArray[np.int64]:
    """[output place][tap]: input row or column, outside the map where padded."""
    starts = np.arange(layer.out_size[axis]) * layer.stride[axis] - layer.pads[axis]
    return starts[:, None] + np.arange(layer.kernel[axis]) * layer.dilation[axis]


def all_inside(layer: Layer) -> bool:
    places = [tap_places(layer, axis) for axis in (0, 1)]
    return all(((p >= 0) & (p < n)).all() for p, n in zip(places, layer.size, strict=True))


def taps(layer: Layer, x: Array) -> list[tuple[Array, NDArray[np.bool_]]]:
    """For each tap in (kh, kw) order: [batch][out_h][out_w][in_c] values, 0 outside; the inside."""
    rows, columns = tap_places(layer, 0), tap_places(layer, 1)
    result = []
    for ky in range(layer.kernel[0]):
        for kx in range(layer.kernel[1]):
            y, column = rows[:, ky], columns[:, kx]
            inside_y, inside_x = (
                (y >= 0) & (y < layer.size[0]),
                (column >= 0) & (column < layer.size[1]),
            )
            inside = inside_y[:, None] & inside_x
            values = x[:, np.where(inside_y, y, 0)][:, :, np.where(inside_x, column, 0)]
            result.append((np.where(inside[None, :, :, None], values, x.dtype.type(0)), inside))
    return result


def fused_multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c, rounded once.

    The product of two float32 is exact in float64. Its sum with c is rounded to odd there (an
    inexact even result moves to its neighbour towards the exact one), so that rounding it again,
    to float32, gives what one rounding would.
    """
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)  # Knuth's two-sum
    even = (total.view(np.int64) & 1) == 0
    towards = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, towards, total).astype(np.float32)


def convolution(layer: Layer, x: Floats, weights: Floats) -> Floats:
    """The chain of fused multiply-adds; weights [out_c][kh][kw][in_c / groups]."""
    share, filters = layer.in_c // layer.groups, layer.out_c // layer.groups
    result = np.zeros(layer.output_shape, np.float32)
    flat = weights.reshape(layer.out_c, -1, share)
    for tap, (values, _) in enumerate(taps(layer, x)):
        for group in range(layer.groups):
            of_group = slice(group * filters, (group + 1) * filters)
            for c in range(share):
                value = values[..., group * share + c, None]
                weight = flat[of_group, tap, c]
                result[..., of_group] = fused_multiply_add(
                    *np.broadcast_arrays(value, weight), result[..., of_group]
                )
    return result


def depthwise(layer: Layer, x: Floats, weights: Floats) -> Floats:
    """Taps outside the map are left out; weights [kh][kw][channels]."""
    result = np.zeros(layer.output_shape, np.float32)
    flat = weights.reshape(-1, layer.in_c)
    for tap, (values, inside) in enumerate(taps(layer, x)):
        added = fused_multiply_add(values, np.broadcast_to(flat[tap], values.shape), result)
        result = np.where(inside[None, :, :, None], added, result)
    return result


def integer_convolution(
    layer: Layer, x: Array, signs: Array, mul: int, add: int
) -> NDArray[np.int32]:
    """sum w * (mul x + add) over taps inside the map; signs [out_c][kh][kw][in_c / groups]."""
    share, filters = layer.in_c // layer.groups, layer.out_c // layer.groups
    result = np.zeros(layer.output_shape, np.int64)
    flat = signs.astype(np.int64).reshape(layer.out_c, -1, share)
    for tap, (values, inside) in enumerate(taps(layer, x.astype(np.int64))):
        seen = np.where(inside[None, :, :, None], mul * values + add, 0)
        for group in range(layer.groups):
            of_group = slice(group * filters, (group + 1) * filters)
            channels = seen[..., group * share : (group + 1) * share]
            result[..., of_group] += channels @ flat[of_group, tap].T
    return result.astype(np.int32)


def maximum_pool(layer: Layer, x: Floats) -> Floats:
    result = np.full(layer.output_shape, -np.inf, np.float32)
    for values, inside in taps(layer, x):
        after = np.maximum(result, values)
        result = np.where(inside[None, :, :, None], after, result)
    return result


def average_pool(layer: Layer, x: Floats) -> Floats:
    """Blocks of at most 14 taps, added with what rounding takes from each of these additions."""
    rows = max(14 // layer.kernel[1], 1)
    blocks: dict[tuple[int, int], Floats] = {}
    count = np.zeros(layer.out_size, np.float32)
    for (ky, kx), (values, inside) in zip(np.ndindex(layer.kernel), taps(layer, x), strict=True):
        block = blocks.get((ky // rows, kx // 14), np.zeros(layer.output_shape, np.float32))
        blocks[ky // rows, kx // 14] = block + values
        count += inside
    total = rest = np.zeros(layer.output_shape, np.float32)
    for _, block in sorted(blocks.items(), key=lambda item: item[0]):
        added = block + rest
        after = total + added
        with np.errstate(invalid="ignore"):
            rest = (total - (after - (after - total))) + (added - (after - total))
        rest, total = np.where(np.isnan(rest), np.float32(0), rest), after
    return total / count[None, :, :, None]


def rounded(x: Floats, half: bool) -> Floats:
    """What memory holds of x."""
    return x.astype(np.float16).astype(np.float32) if half else x


def stored(x: Floats, half: bool) -> Array:
    """The array in memory."""
    return x.astype(np.float16) if half else x
