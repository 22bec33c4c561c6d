"""Bit packing: bit 1 is +1, least significant bit first, 32-bit words, tail bits 0."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phonebit.format.bits import (
    pack_mask,
    pack_signs,
    unpack_mask,
    unpack_signs,
    words_per_row,
)

COUNTS = (1, 31, 32, 33, 63, 64, 65, 300)


def packed_by_hand(signs: np.ndarray) -> np.ndarray:
    """Word by word from the definition."""
    rows = signs.reshape(-1, signs.shape[-1])
    words = np.zeros((rows.shape[0], -(-rows.shape[1] // 32)), np.uint32)
    for row in range(rows.shape[0]):
        for index in range(rows.shape[1]):
            if rows[row, index] > 0:
                words[row, index // 32] |= np.uint32(1 << (index % 32))
    return words.reshape(*signs.shape[:-1], -1)


@given(st.integers(0, 2**32), st.sampled_from(COUNTS), st.integers(1, 3))
def test_packing_follows_its_definition_and_can_be_undone(seed: int, count: int, rows: int) -> None:
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (rows, 2, count))
    words = pack_signs(signs)
    np.testing.assert_array_equal(words, packed_by_hand(signs))
    np.testing.assert_array_equal(unpack_signs(words, count), signs)
    np.testing.assert_array_equal(unpack_mask(pack_mask(signs > 0), count), signs > 0)
    assert words.shape == (rows, 2, words_per_row(count))


def test_the_first_channel_is_the_lowest_bit() -> None:
    assert pack_signs([1, -1, -1, 1]).tolist() == [0b1001]
    assert pack_signs([-1] * 32 + [1]).tolist() == [0, 1]
