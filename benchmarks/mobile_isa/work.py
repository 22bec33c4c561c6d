"""How much work a work-item does, and in which loops: static counts become executed ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.mobile_isa.layers import Layer, Parameters


@dataclass(frozen=True)
class Work:
    """What a work-item does.

    Attributes:
        unit: what is counted: words of 32 binary MACs, float MACs, or results.
        per_item: how many of them.
        extents: trip counts of the source's loops, outermost first.
        anchor: "popcount" or "multiply_add" and how many of them an item executes at least.
        idle: trips of loops without the anchor (reductions over lanes).
    """

    unit: str
    per_item: float
    extents: tuple[int, ...]
    anchor: tuple[str, float] | None = None
    idle: int = 1


def work(layer: Layer, kernel: str, parameters: Parameters) -> Work:
    """What a work-item of a kernel does in a layer."""
    d = {
        name: value
        for name, value in {**layer.defines, **dict(parameters)}.items()
        if isinstance(value, int)
    }
    return _WORK[kernel](d)


def _register_tile(d: dict[str, int]) -> Work:
    vector = d.get("VECTOR_WORDS", 4)
    items = 2 if d["TILE_FILTERS"] == 4 else 1
    pairs = items * d["TILE_PIXELS"] * d["TILE_FILTERS"]
    window = (d["KERNEL_H"], d["KERNEL_W"], d["IN_WORDS"] // vector)
    words = math.prod(window) * vector
    if not d.get("COUNT"):
        return Work("word", pairs * words, (items, *window), ("popcount", pairs * words))
    block = 8 // vector
    if window[2] % block == 0:
        extents = (items, window[0], window[1], window[2] // block)
        return Work("word", pairs * words, extents, ("popcount", pairs * words / 2))
    popcounts = words // 8 * 4 + words % 8
    rest = words % 8 // vector
    return Work("word", pairs * words, (items, words // 8, rest), ("popcount", pairs * popcounts))


def _byte(d: dict[str, int]) -> Work:
    words = 8 * d["KERNEL_H"] * d["KERNEL_W"] * d["IN_WORDS"]
    chunks = 32 * d["IN_WORDS"] // d["GRANULARITY"]
    anchor = ("popcount", float(words)) if d["GRANULARITY"] >= 32 else None
    return Work("word", words, (d["KERNEL_H"], d["KERNEL_W"], chunks), anchor)


def _single_filter(d: dict[str, int]) -> Work:
    window = (d["KERNEL_H"], d["KERNEL_W"], d["IN_WORDS"] // d["VECTOR_WORDS"])
    words = math.prod(window) * d["VECTOR_WORDS"]
    return Work("word", words, window, ("popcount", words))


def _split(d: dict[str, int]) -> Work:
    lanes = d["GROUP_SIZE"] // 8
    vectors = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_WORDS"] // d["VECTOR_WORDS"]
    trips = -(-vectors // lanes)
    words = trips * d["TILE_FILTERS"] * d["VECTOR_WORDS"]
    return Work("word", words, (trips,), ("popcount", words), idle=int(math.log2(lanes)))


def _grouped(d: dict[str, int]) -> Work:
    words = -(-d["IN_C"] // d["GROUPS"] // 32)
    extents = (8, d["KERNEL_H"], d["KERNEL_W"], words)
    return Work("word", math.prod(extents), extents, ("popcount", math.prod(extents)))


def _float_tile(d: dict[str, int]) -> Work:
    macs = d.get("TILE_PIXELS", 1) * d["TILE_FILTERS"]
    macs *= d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"] // d["GROUPS"]
    channels = d["IN_C"] // d["GROUPS"]
    quads = channels // 4 if channels >= 4 else channels
    extents = (d["KERNEL_H"], d["KERNEL_W"], quads, 4)
    return Work("MAC", macs, extents, ("multiply_add", macs))


def _float_dot(d: dict[str, int]) -> Work:
    taps = d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"]
    trips = -(-taps // (4 * d["SPLIT"]))
    macs = 4 * trips * d["TILE_PIXELS"] * d["TILE_FILTERS"]
    return Work("MAC", macs, (trips, int(math.log2(d["SPLIT"]))))


def _planes(d: dict[str, int]) -> Work:
    words = -(-d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"] // 32)
    results = d["TILE_PIXELS"] * d["TILE_FILTERS"]
    popcounts = words * 9 * d["TILE_PIXELS"] * (d["TILE_FILTERS"] + 1)
    macs = results * d["KERNEL_H"] * d["KERNEL_W"] * d["IN_C"]
    return Work("MAC", macs, (words,), ("popcount", popcounts))


def _results(per_item: str | int, *loops: str | int) -> Callable[[dict[str, int]], Work]:
    """Work of kernels whose loops run over the window or over what is named."""

    def find(d: dict[str, int]) -> Work:
        number = d.get(per_item, 1) if isinstance(per_item, str) else per_item
        extents = tuple(d[loop] if isinstance(loop, str) else loop for loop in loops)
        return Work("result", number, extents)

    return find


_WORK: dict[str, Callable[[dict[str, int]], Work]] = {
    "bconv2d_tiled": _register_tile,
    "bconv2d_image": _register_tile,
    "bconv2d_byte": _byte,
    "bconv2d_accumulate": _single_filter,
    "bconv2d_split": _split,
    "bgemv": _split,
    "bconv2d_grouped": _grouped,
    "bdepthwise2d": _results(32, "KERNEL_H", "KERNEL_W"),
    "conv2d_u8_direct": _float_tile,
    "conv2d_u8_planes": _planes,
    "split_planes": _results(32, 4),
    "conv2d_f32": _float_tile,
    "conv2d_f32_dot": _float_dot,
    "conv2d_f32_grouped": _float_tile,
    "depthwise_f32": _results("TILE_CHANNELS", "KERNEL_H", "KERNEL_W"),
    "pool": _results("TILE_CHANNELS", "KERNEL_H", "KERNEL_W"),
    "elementwise": _results("TILE_CHANNELS"),
    "max_pool_bits": _results("VECTOR_WORDS", "KERNEL_H", "KERNEL_W"),
    "concat_bits": _results(1),
    "concat": _results(4),
    "pad": _results(4),
    "select_channels": _results(4),
    "softmax": _results(63, 63, 4, 63, 4, 63),
    "pack_thresholds": _results(32, 32),
}
