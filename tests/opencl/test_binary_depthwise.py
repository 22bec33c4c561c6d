"""bdepthwise2d against sums of products, channel by channel."""

from __future__ import annotations

import numpy as np
import pytest
from binary_reference import Case, bases, check_sink, convolve, signs
from kernel_driver import pack_bits


def depthwise(channels: int, **settings: object) -> Case:
    return Case(channels, channels, groups=channels, **settings)  # type: ignore[arg-type]


CASES = [
    depthwise(1),
    depthwise(31, pad_value=1, batch=3),
    depthwise(32, sink="values+bits", tune={"GROUP_SIZE": 32}),
    depthwise(33, sink="values", pad_value=1),
    depthwise(36, sink="bits", pads=(0, 0, 0, 0)),
    depthwise(64, stride=(2, 2), pad_value=-1, tune={"GROUP_SIZE": 128}),
    depthwise(65, dilation=(2, 1), pads=(2, 0, 1, 2), tune={"GROUP_SIZE": 256}),
    depthwise(128, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(3, 7)),
    # 15 and 255 taps are the most that four and eight planes count.
    depthwise(96, kernel=(3, 5), pads=(1, 2, 1, 2)),
    depthwise(40, kernel=(4, 4), in_hw=(6, 6)),
    depthwise(33, kernel=(15, 17), in_hw=(16, 17), pads=(1, 2, 1, 1)),
    depthwise(32, kernel=(16, 16), in_hw=(16, 17), pads=(0, 1, 0, 0), sink="values"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bit_sliced_counts_equal_sums_of_products(case: Case) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    weights = signs(case.random, case.out_c, *case.kernel, 1)
    packed = pack_bits(np.moveaxis(weights[..., 0], 0, -1))
    base = bases(case, weights)
    check_sink("bdepthwise2d", case, [pack_bits(x), packed], convolve(case, x, weights), base)


def test_all_taps_different_and_all_equal_do_not_overflow_the_planes() -> None:
    for size in ((3, 5), (4, 4), (15, 17), (16, 16)):
        for sign in (-1, 1):
            case = depthwise(32, kernel=size, in_hw=size, pads=(0, 0, 0, 0), sink="values")
            x = np.ones((1, *size, 32), np.int8)
            weights = np.full((32, *size, 1), sign, np.int8)
            packed = pack_bits(np.moveaxis(weights[..., 0], 0, -1))
            acc = convolve(case, x, weights)
            assert (acc == sign * size[0] * size[1]).all()
            check_sink("bdepthwise2d", case, [pack_bits(x), packed], acc, bases(case, weights))
