"""bconv2d_mma against sums of products.

On NVIDIA GPUs of compute capability 8.0 or more, the tensor cores compute. Elsewhere the kernel's
own emulation of their instruction stands in: indexing, borders and barriers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from binary_reference import Case, bases, check_sink, convolve, signs
from kernel_driver import opencl_queue, pack_bits
from kernel_parts import Part
from numpy.typing import NDArray

from phonebit.bnn_kernels.sources import tunables

Words = NDArray[np.uint32]


@cache
def has_tensor_cores() -> bool:
    device = opencl_queue().device
    if "cl_nv_device_attribute_query" not in device.extensions.split():
        return False
    return int(device.compute_capability_major_nv) >= 8


def mma_weights(packed: Words, tile_filters: int, split: int) -> Words:
    """Weights [OUT_C][words of the window] in the order of ``@weights mma``."""
    filters, words = packed.shape
    tiles, chunks = -(-filters // tile_filters), -(-words // (8 * split)) * split
    padded = np.zeros((tiles * tile_filters, chunks * 8), np.uint32)
    padded[:filters, :words] = packed
    # tile, quarter q, pair of blocks, block of the pair, i; chunk, part, word
    axes = padded.reshape(tiles, 4, tile_filters // 16, 2, 2, chunks, 4, 2)
    # tile, chunk, pair of blocks, column 2 q + i, part; block of the pair, word
    return np.ascontiguousarray(axes.transpose(0, 5, 2, 1, 4, 6, 3, 7))


def check(case: Case, parts: Sequence[Part] = ()) -> None:
    random = case.random
    x = signs(random, case.batch, *case.in_hw, case.in_c)
    weights = signs(random, case.out_c, *case.kernel, case.in_c)
    chosen = {tunable.name: tunable.default for tunable in tunables("bconv2d_mma")}
    chosen |= case.tune
    packed = pack_bits(weights).reshape(case.out_c, -1)
    base = bases(case, weights)
    # A limit is half of a base: this shifts both by what the kernel leaves out of d.
    base[:, : case.out_c] -= 2 * (weights > 0).sum(axis=(1, 2, 3))
    operands = [pack_bits(x), mma_weights(packed, chosen["TILE_FILTERS"], chosen["SPLIT"])]
    extra = {} if has_tensor_cores() else {"PHONEBIT_EMULATE_MMA": 1}
    acc = convolve(case, x, weights)
    check_sink("bconv2d_mma", case, operands, acc, base, extra, parts=parts, has_one_buffer=True)


def tune(pixels: int, filters: int, warps: int = 1, split: int = 1) -> dict[str, int]:
    return {"TILE_PIXELS": pixels, "TILE_FILTERS": filters, "WARPS": warps, "SPLIT": split}


def pointwise(in_c: int, out_c: int, in_hw: tuple[int, int], **others: Any) -> Case:
    return Case(in_c, out_c, in_hw, **{"kernel": (1, 1), "pads": (0, 0, 0, 0)} | others)


SHORT, WIDE = tune(16, 32), tune(16, 64)

# Pixels of 1, 2, 3, 4, 5, 8, 10, 16 and 24 words: chunks straddle taps, fill them, leave a tail.
WINDOWS = [
    Case(1, 1, pad_value=-1, tune=SHORT),
    Case(31, 7, tune=SHORT, batch=3),
    Case(32, 32, tune=tune(16, 32, 2), pad_value=1),
    Case(33, 31, tune=SHORT, pad_value=1, in_hw=(4, 4)),
    Case(64, 33, tune=SHORT, stride=(2, 2), sink="values+bits"),
    Case(65, 15, tune=SHORT, dilation=(2, 1), pads=(2, 1, 2, 1)),
    Case(96, 8, tune=SHORT, pads=(0, 0, 0, 0), kernel=(2, 5), in_hw=(5, 7), sink="values"),
    Case(128, 40, tune=SHORT, pad_value=-1, stride=(2, 1), sink="values+bits"),
    Case(150, 17, tune=SHORT, pad_value=1, kernel=(1, 3), pads=(0, 2, 0, 1)),
    Case(256, 32, tune=SHORT, pad_value=1, sink="bits"),
    Case(256, 9, stride=(2, 3), dilation=(2, 2), pads=(3, 1, 2, 2), pad_value=1, tune=SHORT),
    Case(300, 65, tune=WIDE, pads=(0, 2, 1, 0), sink="values+bits"),
    Case(512, 20, tune=SHORT, batch=2, in_hw=(3, 3)),
    Case(750, 64, tune=WIDE, pad_value=1, in_hw=(3, 2)),
    Case(32, 8, tune=SHORT, kernel=(15, 15), pads=(7, 7, 7, 7), in_hw=(3, 4)),
]

# One pixel less than a warp's or group's, as many, one more; channels likewise.
EDGES = [
    pointwise(64, 31, (5, 3), tune=SHORT),
    pointwise(64, 32, (4, 4), tune=SHORT),
    pointwise(96, 33, (17, 1), tune=SHORT, sink="values"),
    pointwise(256, 63, (8, 8), tune=tune(16, 64, 4)),
    pointwise(256, 65, (5, 13), tune=tune(16, 64, 4), sink="values+bits"),
    pointwise(32, 129, (11, 3), tune=tune(16, 128, 2)),
    pointwise(96, 65, (31, 3), tune=tune(32, 64)),
    pointwise(32, 127, (33, 2), tune=tune(32, 128)),
    pointwise(128, 96, (13, 5), stride=(2, 2), tune=tune(64, 64), sink="values"),
    pointwise(64, 8, (5, 6), pads=(1, 1, 0, 0), batch=3, tune=tune(64, 32)),
]


def slow(case: Case) -> Any:
    """PoCL takes seconds to compile what NVIDIA's tensor cores do."""
    return pytest.param(case, marks=pytest.mark.slow)


# Chunks of a window that the warps share evenly or not, fewer chunks than warps, dense layers.
SPLITS = [
    Case(32, 40, tune=tune(16, 32, 1, 2), batch=2),
    Case(64, 33, tune=tune(16, 32, 2, 3), sink="values+bits"),
    Case(256, 65, tune=tune(16, 64, 1, 3), pad_value=1),
    Case(256, 32, tune=tune(16, 32, 1, 4), pad_value=-1, stride=(2, 2), sink="bits"),
    Case(96, 75, kernel=(4, 5), in_hw=(4, 5), pads=(0, 0, 0, 0), tune=tune(16, 32, 1, 8)),
    pointwise(512, 10, (1, 1), batch=3, tune=tune(16, 32, 1, 8), sink="values"),
    pointwise(64, 64, (5, 7), tune=tune(32, 32, 2, 2)),
    Case(300, 64, tune=tune(16, 64, 1, 6), in_hw=(4, 5)),
]


@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_windows_equal_sums_of_products(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", EDGES, ids=str)
def test_edges_of_tiles_equal_sums_of_products(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", [*SPLITS[:2], *map(slow, SPLITS[2:])], ids=str)
def test_split_windows_equal_sums_of_products(case: Case) -> None:
    check(case)


TILES = list(product((16, 32, 64), (32, 64, 128)))[:-1]  # the last has more counts than registers


@pytest.mark.parametrize(("pixels", "filters"), TILES)
def test_every_tile_is_right(pixels: int, filters: int) -> None:
    if not has_tensor_cores():
        pytest.skip("for tensor cores, of NVIDIA; the tests above emulate one case of each tile")
    for case in (Case(256, filters + 1, in_hw=(9, 11), batch=2), Case(96, filters, pad_value=1)):
        for warps in (1, 2, 4, 8):
            check(replace(case, tune=tune(pixels, filters, warps)))
        for warps, split in ((1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (1, 6), (1, 8)):
            if warps * split * pixels * filters <= 8192:
                check(replace(case, tune=tune(pixels, filters, warps, split)))
