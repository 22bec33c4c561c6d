"""max_pool_bits and concat_bits against maxima and concatenation of -1/+1."""

from __future__ import annotations

import numpy as np
import pytest
from binary_reference import (
    Case,
    guarded,
    map_taps,
    read_bits,
    signs,
    threshold_defines,
    unguarded,
    words,
)
from kernel_driver import pack_bits, run_pixels

POOLS = [
    (Case(1, 1, kernel=(2, 2), stride=(2, 2), pads=(0, 0, 0, 0), in_hw=(4, 6)), False),
    (Case(31, 31, kernel=(3, 3), stride=(2, 2), batch=3, tune={"GROUP_SIZE": 32}), True),
    (Case(32, 32, kernel=(2, 3), dilation=(2, 1), pads=(0, 1, 0, 2)), True),
    (Case(33, 33, kernel=(3, 3), pads=(2, 0, 1, 1), tune={"GROUP_SIZE": 128}), False),
    (Case(33, 33, kernel=(3, 3), pads=(2, 0, 1, 1), batch=2, tune={"UNIT": 8}), True),
    (Case(64, 64, kernel=(5, 6), pads=(0, 0, 0, 0), tune={"GROUP_SIZE": 256}), True),
    (Case(300, 300, kernel=(1, 1), stride=(2, 1), pads=(0, 0, 0, 0), batch=2), True),
]


@pytest.mark.parametrize(("case", "has_flip"), POOLS, ids=str)
def test_pools_equal_maxima_and_minima_inside_the_map(case: Case, has_flip: bool) -> None:
    x = signs(case.random, case.batch, *case.in_hw, case.in_c)
    flip = signs(np.random.default_rng(3), case.in_c)
    taps = map_taps(case, x, -2)
    largest = np.max(list(taps.values()), axis=0)
    minimum = np.min(list(map_taps(case, x, 2).values()), axis=0)
    expected = np.where(flip > 0, minimum, largest) if has_flip else largest
    defines = case.defines() | threshold_defines() | {"HAS_FLIP": int(has_flip)}
    mask = pack_bits(flip) if has_flip else np.zeros(1, np.uint32)
    bits = guarded(case.pixels * words(case.out_c), np.uint32)
    results = run_pixels("max_pool_bits", defines, case.pixels, [pack_bits(x), mask, bits])
    found = read_bits(results[-1], case.pixels, case.out_c)
    np.testing.assert_array_equal(found, expected.reshape(found.shape))


@pytest.mark.parametrize(
    ("parts", "batch", "group_size"),
    [
        ((32, 64), 1, 64),
        ((1, 31, 33), 3, 32),
        ((7, 3, 90, 1), 1, 128),
        ((33, 31, 300), 2, 256),
    ],
)
def test_concatenated_bits_are_those_of_the_operands(
    parts: tuple[int, ...], batch: int, group_size: int
) -> None:
    random = np.random.default_rng(sum(parts))
    operands = [signs(random, batch, 3, 5, channels) for channels in parts]
    joined = np.concatenate(operands, axis=-1)
    bits = guarded(batch * 15 * words(sum(parts)), np.uint32)
    for i, operand in enumerate(operands):
        case = Case(parts[i], sum(parts), (3, 5), (1, 1), pads=(0, 0, 0, 0), batch=batch)
        defines = case.defines() | {"CHANNEL_OFFSET": sum(parts[:i]), "GROUP_SIZE": group_size}
        _, bits = run_pixels("concat_bits", defines, case.pixels, [pack_bits(operand), bits])
    np.testing.assert_array_equal(unguarded(bits).reshape(batch, 3, 5, -1), pack_bits(joined))
