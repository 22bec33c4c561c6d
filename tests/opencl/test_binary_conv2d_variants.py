"""Binary convolutions other than the tiled one against sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from binary_reference import (
    Case,
    bases,
    borders,
    check_convolution,
    check_sink,
    convolve,
    draw_thresholds,
    guarded,
    limits,
    read_bits,
    signs,
    threshold_defines,
    words,
)
from kernel_driver import opencl_queue, pack_bits, run_pixels
from kernel_parts import Part

NO_PADS = (0, 0, 0, 0)

BYTE = [
    Case(1, 7, tune={"GRANULARITY": 8}),
    Case(31, 8, tune={"GRANULARITY": 16}, pad_value=1, batch=3),
    Case(33, 9, tune={"GRANULARITY": 32}, sink="values+bits"),
    Case(33, 9, tune={"GRANULARITY": 8}, sink="values", pad_value=1),
    Case(64, 33, tune={"GRANULARITY": 64}, stride=(2, 2), dilation=(1, 2), pads=(0, 2, 1, 3)),
    Case(65, 4, tune={"GRANULARITY": 32, "GROUP_SIZE": 32}, pad_value=1, sink="bits"),
    Case(128, 16, tune={"GRANULARITY": 128}, pad_value=-1),
    Case(256, 8, tune={"GRANULARITY": 256, "GROUP_SIZE": 128}, pads=NO_PADS),
    Case(512, 7, tune={"GRANULARITY": 512}, kernel=(2, 2), in_hw=(3, 4)),
    Case(1000, 8, tune={"GRANULARITY": 1024, "GROUP_SIZE": 256}, pad_value=1, in_hw=(3, 4)),
]

SPLIT = [
    Case(1, 1),
    Case(31, 7, tune={"GROUP_SIZE": 32}, pad_value=1, batch=3),
    Case(33, 8, tune={"TILE_FILTERS": 2, "GROUP_SIZE": 128}, sink="values+bits"),
    Case(64, 31, tune={"TILE_FILTERS": 4, "VECTOR_WORDS": 2}, stride=(2, 2)),
    Case(96, 9, tune={"VECTOR_WORDS": 1}, dilation=(2, 1), pads=(2, 0, 1, 2), sink="values"),
    Case(128, 17, tune={"TILE_FILTERS": 2}, pad_value=-1, sink="bits"),
    Case(256, 33, tune={"TILE_FILTERS": 4, "GROUP_SIZE": 32}, kernel=(5, 4), in_hw=(5, 5)),
    Case(300, 8, tune={"GROUP_SIZE": 256}, pad_value=1, in_hw=(3, 3)),
    Case(300, 65, tune={"VECTOR_WORDS": 1}, kernel=(1, 1), pads=NO_PADS, in_hw=(2, 2)),
]

GROUPED = [
    Case(1, 1),
    Case(33, 9, batch=3, pad_value=1, sink="values+bits"),
    Case(300, 8, stride=(2, 1), dilation=(1, 2), pads=(1, 3, 0, 1), tune={"GROUP_SIZE": 32}),
    Case(64, 8, groups=2),
    Case(96, 6, groups=3, pad_value=1, tune={"GROUP_SIZE": 128}),
    Case(6, 6, groups=6, sink="values"),
    Case(66, 33, groups=3, pad_value=1, batch=2),
    # 33 channels per group: one bit more than a word, from bit 0, 1 and 2 of a word on.
    Case(99, 12, groups=3, pad_value=-1, sink="bits"),
    Case(310, 10, groups=10, kernel=(3, 2), pads=(2, 0, 0, 1), tune={"GROUP_SIZE": 256}),
    Case(195, 40, groups=5, pads=NO_PADS),
]

IMAGE = [
    Case(128, 7, batch=3, tune={"GROUP_SIZE": 32}),
    Case(128, 9, pad_value=1, tune={"TILE_PIXELS": 4, "TILE_FILTERS": 8}, sink="values+bits"),
    Case(256, 17, tune={"TILE_FILTERS": 16, "ACCUMULATOR": 1, "TILE_PIXELS": 1}, batch=2),
    Case(228, 8, batch=2, pad_value=1),
    Case(101, 8, pads=NO_PADS, stride=(2, 2), dilation=(1, 2), sink="values"),
    Case(300 + 84, 12, pads=(2, 0, 0, 1), tune={"GROUP_SIZE": 128}, sink="bits"),
    Case(128, 4, kernel=(1, 1), pads=NO_PADS, tune={"TILE_FILTERS": 8, "GROUP_SIZE": 256}),
]

# Windows of whole blocks of eight words, a rest, both; tiles beyond pixels and channels.
LANES = [
    Case(1, 7),
    Case(31, 8, tune={"GROUP_SIZE": 1}, batch=3),
    Case(33, 40, pad_value=1, sink="values+bits"),
    Case(64, 48, tune={"TILE_PIXELS": 2}, stride=(2, 2), sink="bits"),
    Case(65, 15, tune={"TILE_PIXELS": 4}, dilation=(2, 1), pads=(2, 1, 2, 1)),
    Case(96, 33, kernel=(2, 5), pads=NO_PADS, in_hw=(5, 7), sink="values"),
    Case(256, 64, tune={"TILE_PIXELS": 2, "GROUP_SIZE": 32}, pad_value=-1),
    Case(300, 31, tune={"TILE_PIXELS": 4}, sink="values+bits"),
    Case(512, 40, kernel=(1, 1), pads=NO_PADS, sink="bits"),
    Case(128, 100, kernel=(4, 4), in_hw=(4, 4), pads=NO_PADS, batch=3),
]

ACCUMULATE = [
    Case(1, 33),
    Case(65, 32, pad_value=1, batch=3, tune={"GROUP_SIZE": 32}),
    Case(300, 31, stride=(2, 2), pads=(0, 1, 2, 1), tune={"VECTOR_WORDS": 1, "GROUP_SIZE": 256}),
    Case(256, 64, kernel=(1, 1), pads=NO_PADS, tune={"GROUP_SIZE": 128}),
    Case(320, 8, dilation=(2, 2), pads=(2, 2, 2, 2), tune={"VECTOR_WORDS": 2}),
]


@pytest.mark.parametrize("case", SPLIT, ids=str)
def test_split_windows_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_split", case)


@pytest.mark.parametrize("case", LANES, ids=str)
def test_lanes_of_filters_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_lanes", case)


@pytest.mark.parametrize("case", GROUPED, ids=str)
def test_groups_at_any_bit_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_grouped", case)


def check_bytes(case: Case, parts: Sequence[Part] = ()) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    positive = np.zeros(words(case.out_c), np.uint32)  # not read
    check_sink(
        "bconv2d_byte",
        case,
        [pack_bits(x), pack_bits(weights)],
        convolve(case, x, weights),
        bases(case, weights),
        {"COMPARE": 0},
        after_borders=[positive],
        parts=parts,
    )


@pytest.mark.parametrize("case", BYTE, ids=str)
def test_bytes_at_any_granularity_equal_sums_of_products(case: Case) -> None:
    check_bytes(case)


@pytest.mark.parametrize(
    "case",
    [
        Case(33, 7),
        Case(64, 8, pad_value=1, batch=3),
        Case(128, 33, pad_value=-1, tune={"GRANULARITY": 128}),
        Case(1, 64, stride=(2, 2)),
    ],
    ids=str,
)
def test_karnaugh_form_decides_both_signs_of_gamma(case: Case) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    acc = convolve(case, x, weights)
    xi = draw_thresholds(case, acc)
    gamma = signs(np.random.default_rng(5), case.out_c)
    room = bases(case, weights)
    room[:, : case.out_c] -= xi
    defines = case.defines() | threshold_defines() | {"COMPARE": 1}
    results = run_pixels(
        "bconv2d_byte",
        defines,
        case.pixels,
        [
            pack_bits(x),
            pack_bits(weights),
            room.astype(np.int32),
            borders(case),
            pack_bits(gamma),
            guarded(case.pixels * words(case.out_c), np.uint32),
        ],
    )
    flat = acc.reshape(-1, case.out_c)
    expected = np.where(gamma > 0, flat >= xi, flat <= xi)  # PhoneBit eq. 8
    np.testing.assert_array_equal(read_bits(results[-1], *flat.shape) > 0, expected)


def _image(packed: np.ndarray[Any, Any], rows: int) -> Any:
    """RGBA32UI image with four words a texel."""
    cl = pytest.importorskip("pyopencl")
    queue = opencl_queue()
    if not queue.device.image_support:
        pytest.skip("the device has no images")
    texels = np.ascontiguousarray(packed).reshape(rows, -1, 4)
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return cl.create_image(queue.context, flags, form, texels.shape[1::-1], hostbuf=texels)


def check_images(case: Case, parts: Sequence[Part] = ()) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    rows = case.batch * case.in_hw[0]
    images = [_image(pack_bits(x), rows), _image(pack_bits(weights), case.out_c)]
    acc = convolve(case, x, weights)
    check_sink("bconv2d_image", case, images, acc, bases(case, weights), parts=parts)


@pytest.mark.parametrize("case", IMAGE, ids=str)
def test_texture_reads_equal_sums_of_products(case: Case) -> None:
    check_images(case)


@pytest.mark.parametrize("case", ACCUMULATE, ids=str)
def test_separate_packing_equals_sums_of_products(case: Case) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, case.in_c)
    acc = convolve(case, x, weights)
    defines = case.defines() | threshold_defines()
    results = run_pixels(
        "bconv2d_accumulate",
        defines,
        case.pixels,
        [
            pack_bits(x),
            pack_bits(weights),
            bases(case, weights).astype(np.int32),
            borders(case),
            guarded(acc.size, np.uint32).view(np.int32),
        ],
    )
    accumulators = results[-1]
    np.testing.assert_array_equal(accumulators[: acc.size], acc.ravel())
    assert (accumulators[acc.size :].view(np.uint32) == 0xA5A5A5A5).all()

    thresholds = draw_thresholds(case, acc)
    packed = guarded(case.pixels * words(case.out_c), np.uint32)
    arguments = [accumulators, thresholds.astype(np.int32), packed]
    results = run_pixels("pack_thresholds", defines, case.pixels, arguments)
    found = read_bits(results[-1], case.pixels, case.out_c) > 0
    np.testing.assert_array_equal(found, acc.reshape(-1, case.out_c) >= thresholds)


def test_limits_are_the_thresholds_in_counts() -> None:
    base = np.full((1, 32), 9)
    table = limits(base, np.arange(-11, 21))
    for threshold, limit in zip(range(-11, 21), table[0], strict=True):
        assert all((9 - 2 * d >= threshold) == (d < limit) for d in range(10))
