"""How much work a work-item of a convolution does, and in which loops.

So static counts become executed ones. Among the other kernels nothing is chosen: only their spills
are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What a work-item does."""

    unit: str  # what is counted: words of 32 binary MACs, or float MACs
    per_item: float  # how many of them
    extents: tuple[float, ...]  # trip counts of the source's loops, outermost first
    # How many of the anchor, an operation whose number tells how often loops run, an item executes
    # at least.
    operations: float
    operation: str = "popcount"  # the anchor: a key of judge.ANCHORS
    idle: int = 1  # trips of loops without the anchor (reductions over lanes)


def work(kernel: str, defines: dict[str, int]) -> Work | None:
    """What a work-item of a kernel does by its defines; None: only spills are looked at."""
    return _WORK[kernel](defines) if kernel in _WORK else None


def _pixels(d: dict[str, int]) -> int:
    """Of a work-item's tile, as far as the map has as many."""
    return min(d.get("TILE_PIXELS", 1), d["OUT_H"] * d["OUT_W"])


def _register_tile(d: dict[str, int]) -> Work:
    vector = d.get("VECTOR_WORDS", 4)
    pairs = d["TILE_PIXELS"] * d["TILE_FILTERS"]
    rows, columns, depth = d["KERNEL_H"], d["KERNEL_W"], d["IN_WORDS"] // vector
    vectors = rows * columns * depth
    popcounts = vectors * vector
    trips = float(columns)
    if d.get("COUNT"):
        # One for a vector, and one or two words are left in the adders.
        popcounts = vectors + vector // 2 if vector > 1 else vectors
        if depth > 1:  # the first tap is before the loops: so many are left for a row, on average
            trips -= 1 / rows
    useful = _pixels(d) * d["TILE_FILTERS"] * vectors * vector
    return Work("word", useful, (rows, trips, depth), pairs * popcounts)


def _byte(d: dict[str, int]) -> Work | None:
    if d["GRANULARITY"] < 32:
        return None
    words = 8 * d["KERNEL_H"] * d["KERNEL_W"] * d["IN_WORDS"]
    chunks = 32 * d["IN_WORDS"] // d["GRANULARITY"]
    return Work("word", words, (d["KERNEL_H"], d["KERNEL_W"], chunks), words)


def _single_filter(d: dict[str, int]) -> Work:
    window = (d["KERNEL_H"], d["KERNEL_W"], d["IN_WORDS"] // d["VECTOR_WORDS"])
    words = math.prod(window) * d["VECTOR_WORDS"]
    return Work("word", words, window, words)


def _split(d: dict[str, int]) -> Work:
    lanes = d["GROUP_SIZE"] * d["TILE_FILTERS"] // 32
    vectors = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_WORDS"] // d["VECTOR_WORDS"]
    trips = -(-vectors // lanes)
    words = trips * d["TILE_FILTERS"] * d["VECTOR_WORDS"]
    return Work("word", words, (trips,), words, idle=int(math.log2(lanes)))


def _grouped(d: dict[str, int]) -> Work:
    words = -(-d["IN_C"] // d["GROUPS"] // 32)
    extents = (8, d["KERNEL_H"], d["KERNEL_W"], words)
    return Work("word", math.prod(extents), extents, math.prod(extents))


def _float_tile(d: dict[str, int]) -> Work:
    window = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"] // d["GROUPS"]
    macs = d.get("TILE_PIXELS", 1) * d["TILE_FILTERS"] * window
    useful = _pixels(d) * d["TILE_FILTERS"] * window
    channels = d["IN_C"] // d["GROUPS"]
    quads = channels // 4 if channels >= 4 else channels
    extents = (d["KERNEL_H"], d["KERNEL_W"], quads, 4)
    operation = "multiply_add_half" if d.get("ARITHMETIC") else "multiply_add"
    return Work("MAC", useful, extents, macs, operation)


def _staged(d: dict[str, int]) -> Work:
    """Lanes without a sum run as long as those that have one, and so does the first fetch."""
    window = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"]
    results = d["TILE_PIXELS"] * d["TILE_FILTERS"]
    lanes = results // d["LANE_FILTERS"]
    sums = -(-lanes // d["GROUP_SIZE"]) * d["LANE_FILTERS"]
    steps = -(-window // d["CHUNK"]) + 1
    useful = _pixels(d) * d["TILE_FILTERS"] * window
    extents = (steps, d["CHUNK"] // 4, 4)
    return Work("MAC", useful / d["GROUP_SIZE"], extents, sums * steps * d["CHUNK"], "multiply_add")


def _planes(d: dict[str, int]) -> Work:
    words = -(-d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"] // 32)
    results = d["TILE_PIXELS"] * d["TILE_FILTERS"]
    popcounts = words * 9 * d["TILE_PIXELS"] * (d["TILE_FILTERS"] + 1)
    macs = results * d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"]
    return Work("MAC", macs, (words,), popcounts)


def _pairs(d: dict[str, int]) -> Work:
    taps = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"]
    rows = min(64 // (d["KERNEL_W"] * d["IN_C"]), d["KERNEL_H"])
    products = d["TILE_PIXELS"] // 2 * d["TILE_FILTERS"] * taps
    # The last rows of a window may be fewer: on average as many as this.
    extents = (d["KERNEL_H"] / rows, rows, d["KERNEL_W"], d["IN_C"])
    return Work("MAC", 2 * products, extents, products, "multiply_add_24")


_WORK: dict[str, Callable[[dict[str, int]], Work | None]] = {
    "bconv2d_tiled": _register_tile,
    "bconv2d_image": _register_tile,
    "bconv2d_byte": _byte,
    "bconv2d_accumulate": _single_filter,
    "bconv2d_split": _split,
    "bgemv": _split,
    "bconv2d_grouped": _grouped,
    "conv2d_u8_direct": _float_tile,
    "conv2d_u8_planes": _planes,
    "conv2d_u8_pairs": _pairs,
    "conv2d_f32": _float_tile,
    "conv2d_f32_staged": _staged,
    "conv2d_f32_grouped": _float_tile,
}
