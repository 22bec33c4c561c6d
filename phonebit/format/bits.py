"""Packing of +-1 values into 32-bit words: the one place in Python that knows which bit is which.

Bit 1 means +1 and bit 0 means -1; element i of the last axis is bit ``i % 32`` of word ``i // 32``;
the bits after the last element are 0. On a little-endian machine the same bytes also read as
8, 16 or 64-bit words.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

WORD_BITS: Final = 32


def words_per_row(count: int) -> int:
    """Words that ``count`` bits occupy."""
    return -(-count // WORD_BITS)


def pack_mask(mask: ArrayLike) -> NDArray[np.uint32]:
    """Packs booleans along the last axis.

    Args:
        mask: Array of shape (..., C).

    Returns:
        Little-endian words of shape (..., ceil(C / 32)).
    """
    flags = np.asarray(mask, dtype=np.bool_)
    count = flags.shape[-1]
    octets = np.packbits(flags, axis=-1, bitorder="little")
    missing = words_per_row(count) * 4 - octets.shape[-1]
    padded = np.pad(octets, [(0, 0)] * (flags.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(padded).view("<u4")


def unpack_mask(words: NDArray[np.uint32], count: int) -> NDArray[np.bool_]:
    """The inverse of ``pack_mask``: booleans of shape (..., count)."""
    octets = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=count, bitorder="little").astype(np.bool_)


def pack_signs(signs: ArrayLike) -> NDArray[np.uint32]:
    """Packs numbers by their sign along the last axis: positive ones become 1 bits."""
    return pack_mask(np.asarray(signs) > 0)


def unpack_signs(words: NDArray[np.uint32], count: int) -> NDArray[np.int8]:
    """The inverse of ``pack_signs``: int8 -1 or +1 of shape (..., count)."""
    return np.where(unpack_mask(words, count), np.int8(1), np.int8(-1))
