"""Every kernel on packed bits computes any part of its output, and writes nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import test_binary_conv2d_variants as variants
import test_binary_mma as mma
from binary_reference import (
    Case,
    bases,
    borders,
    check_convolution,
    check_sink,
    convolve,
    draw_thresholds,
    guarded,
    signs,
    threshold_defines,
    words,
)
from kernel_driver import pack_bits, run_pixels
from kernel_parts import Part, check_parts, random_parts
from test_binary_dense import dense
from test_binary_depthwise import depthwise

POINTWISE = {"kernel": (1, 1), "pads": (0, 0, 0, 0)}
IMAGES = {"batch": 2, "in_hw": (4, 5)}

CONVOLUTIONS = [
    ("bconv2d_tiled", Case(64, 96, tune={"TILE_FILTERS": 8}, **IMAGES)),
    ("bconv2d_tiled", Case(64, 96, tune={"RUN_ON": 1, "TILE_FILTERS": 16}, **IMAGES)),
    ("bconv2d_tiled", Case(33, 75, pad_value=1, sink="values+bits", **IMAGES)),
    ("bconv2d_tiled", Case(96, 84, tune={"TILE_FILTERS": 16}, sink="values", **IMAGES)),
    ("bconv2d_tiled", Case(64, 90, tune={"TILE_FILTERS": 32, "COUNT": 1, "TILE_PIXELS": 1})),
    (
        "bconv2d_tiled",
        Case(256, 72, tune={"TILE_FILTERS": 16, "COUNT": 1}, sink="bits", **POINTWISE),
    ),
    ("bconv2d_lanes", Case(64, 96, **IMAGES)),
    ("bconv2d_lanes", Case(33, 75, pad_value=1, sink="values+bits", **IMAGES)),
    ("bconv2d_split", Case(64, 40, **IMAGES)),
    ("bconv2d_split", Case(31, 41, tune={"TILE_FILTERS": 2}, sink="values+bits")),
    ("bconv2d_split", Case(64, 100, tune={"TILE_FILTERS": 4}, sink="bits")),
    ("bconv2d_grouped", Case(33, 45, sink="values+bits", **IMAGES)),
    ("bconv2d_grouped", Case(64, 64)),
    ("bgemv", dense(64, 71, batch=5)),
    ("bgemv", dense(96, 100, (2, 2), batch=3, TILE_FILTERS=4, sink="values+bits")),
]

BYTES = [
    Case(33, 39, tune={"COMPARE": 0}, sink="values+bits", **IMAGES),
    Case(64, 72, tune={"COMPARE": 0, "GRANULARITY": 64}, pad_value=1),
]

IMAGE = [
    Case(128, 72, tune={"TILE_FILTERS": 8}, **IMAGES),
    Case(128, 54, tune={"TILE_FILTERS": 16}, pad_value=1, sink="values+bits", **IMAGES),
]

MMA = [
    Case(64, 72, tune=mma.tune(16, 32), **IMAGES),
    Case(33, 100, in_hw=(4, 5), batch=2, tune=mma.tune(16, 32, 2, 2), sink="values+bits"),
    Case(64, 250, tune=mma.tune(32, 128), sink="bits", **POINTWISE),
]


def parts_of(kernel: str, case: Case) -> list[Part]:
    return random_parts(kernel, case.tune, case.pixels, case.out_c)


@pytest.mark.parametrize(("kernel", "case"), CONVOLUTIONS, ids=str)
def test_convolutions(kernel: str, case: Case) -> None:
    check_convolution(kernel, case, parts_of(kernel, case))


@pytest.mark.parametrize("case", BYTES, ids=str)
def test_bytes(case: Case) -> None:
    variants.check_bytes(case, parts_of("bconv2d_byte", case))


@pytest.mark.parametrize("case", IMAGE, ids=str)
def test_texture_reads(case: Case) -> None:
    variants.check_images(case, parts_of("bconv2d_image", case))


@pytest.mark.parametrize("case", [MMA[0], *map(mma.slow, MMA[1:])], ids=str)
def test_tensor_cores(case: Case) -> None:
    mma.check(case, parts_of("bconv2d_mma", case))


def test_karnaugh_form() -> None:
    case = Case(33, 45, tune={"COMPARE": 1})
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    room = bases(case, weights)
    room[:, : case.out_c] -= draw_thresholds(case, convolve(case, x, weights))
    positive = pack_bits(signs(np.random.default_rng(5), case.out_c))
    bits = guarded(case.pixels * words(case.out_c), np.uint32)
    tables = [room.astype(np.int32), borders(case), positive]
    arguments = [pack_bits(x), pack_bits(weights), *tables, bits]
    defines = case.defines() | threshold_defines()
    whole = run_pixels("bconv2d_byte", defines, case.pixels, arguments)
    parts = parts_of("bconv2d_byte", case)
    check_parts("bconv2d_byte", defines, case.pixels, arguments, whole, parts)


def test_separate_packing() -> None:
    case = Case(64, 40, **IMAGES)
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    acc = convolve(case, x, weights)
    defines = case.defines() | threshold_defines()
    counts = guarded(acc.size, np.uint32).view(np.int32)
    tables = [bases(case, weights).astype(np.int32), borders(case)]
    bits = guarded(case.pixels * words(case.out_c), np.uint32)
    packing = [acc.astype(np.int32), draw_thresholds(case, acc).astype(np.int32), bits]
    for kernel, arguments in (
        ("bconv2d_accumulate", [pack_bits(x), pack_bits(weights), *tables, counts]),
        ("pack_thresholds", packing),
    ):
        whole = run_pixels(kernel, defines, case.pixels, arguments)
        check_parts(kernel, defines, case.pixels, arguments, whole, parts_of(kernel, case))


@pytest.mark.parametrize("sink", ["threshold", "values+bits"])
def test_depthwise(sink: str) -> None:
    case = replace(depthwise(70, **IMAGES), sink=sink)
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, 1)
    operands = [pack_bits(x), pack_bits(np.moveaxis(weights[..., 0], 0, -1))]
    acc, base = convolve(case, x, weights), bases(case, weights)
    check_sink("bdepthwise2d", case, operands, acc, base, parts=parts_of("bdepthwise2d", case))


@pytest.mark.parametrize("unit", [8, 32])
@pytest.mark.parametrize("channels", [40, 96])
def test_pools(unit: int, channels: int) -> None:
    case = Case(channels, channels, tune={"UNIT": unit}, **IMAGES)
    defines = case.defines() | threshold_defines() | {"HAS_FLIP": 1}
    packed = pack_bits(signs(case.random, case.batch, *case.in_hw, channels))
    mask = pack_bits(signs(np.random.default_rng(3), channels))
    arguments = [packed, mask, guarded(case.pixels * words(channels), np.uint32)]
    whole = run_pixels("max_pool_bits", defines, case.pixels, arguments)
    parts = parts_of("max_pool_bits", case)
    check_parts("max_pool_bits", defines, case.pixels, arguments, whole, parts)


def test_concatenation() -> None:
    case = Case(40, 75, **POINTWISE, **IMAGES)
    defines = case.defines() | {"CHANNEL_OFFSET": 35}
    packed = pack_bits(signs(case.random, case.batch, *case.in_hw, case.in_c))
    arguments = [packed, guarded(case.pixels * words(case.out_c), np.uint32)]
    whole = run_pixels("concat_bits", defines, case.pixels, arguments)
    parts = parts_of("concat_bits", case)
    check_parts("concat_bits", defines, case.pixels, arguments, whole, parts)
