"""The numbers of a dataset: in one piece, or in chunks that may be compressed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.hdf5.heaps import tree_1
from phonebit.converter.importers.hdf5.storage import NOWHERE, Fields, Storage, damaged

COMPACT: Final = 0
CONTIGUOUS: Final = 1
CHUNKED: Final = 2
FILTERED: Final = 2
SINGLE_CHUNK: Final = 1
DEFLATE: Final = 1
SHUFFLE: Final = 2
CHECKSUM: Final = 3
SMALL_CHUNK: Final = 1 << 24
"""Bytes that a chunk may have, however small the array is that it is a part of."""


@dataclass(frozen=True)
class Chunks:
    """Pieces that go through the filters: in a tree, or one alone with the key it had in a tree."""

    address: int
    shape: tuple[int, ...]
    key: bytes = b""


def layout_of(body: Fields, rank: int) -> bytes | tuple[int, int] | Chunks:
    """Where the numbers are: here, (address, bytes), or chunks.

    Raises:
        ConversionError: Elsewhere, or arranged as Keras does not.
    """
    version, kind = body.number(1), body.number(1)
    if version in (3, 4) and kind == COMPACT:
        return body.take(body.number(2))
    if version in (3, 4) and kind == CONTIGUOUS:
        return body.address(), body.address()
    if version == 3 and kind == CHUNKED and body.number(1) == rank + 1:
        return Chunks(body.address(), tuple(body.number(4) for _ in range(rank)))
    if version == 4 and kind == CHUNKED and body.number(1) & FILTERED:
        dimensions, width = body.number(1), body.number(1)
        shape = tuple(body.number(width) for _ in range(dimensions))
        if body.number(1) == SINGLE_CHUNK and dimensions == rank + 1:
            stored, mask = body.take(8), body.take(4)
            return Chunks(body.address(), shape[:rank], stored[:4] + mask + bytes(8 * dimensions))
    raise damaged("an array that is not stored as Keras does (save it without libver='latest')")


def filters_of(body: Fields) -> list[int]:
    """The filters through which chunks went, first to last.

    Raises:
        ConversionError: One of them is not deflate, shuffle or a checksum.
    """
    version, count = body.number(1), body.number(1)
    body.take(6 if version == 1 else 0)
    found = []
    for _ in range(count):
        number = body.number(2)
        named = version == 1 or number >= 256
        name = body.number(2) if named else 0
        body.take(2)
        values = body.number(2)
        body.take(name + (-name % 8 if version == 1 else 0))
        body.take(4 * values + (4 if version == 1 and values % 2 else 0))
        found.append(number)
    if not set(found) <= {DEFLATE, SHUFFLE, CHECKSUM}:
        raise damaged(f"compressed by filter {max(found)}; only gzip is known")
    return found


def read_chunks(
    storage: Storage,
    chunks: Chunks,
    filters: list[int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """All chunks of an array; what is in none is 0."""
    result = np.zeros(shape, dtype)
    size = math.prod(chunks.shape) * dtype.itemsize
    if not 0 < size <= max(4 * result.nbytes, SMALL_CHUNK):
        raise damaged(f"chunks of {size} bytes")
    places = math.prod(-(-n // c) for n, c in zip(shape, chunks.shape, strict=True))
    if (
        places * size > 16 * result.nbytes + SMALL_CHUNK
    ):  # of four axes each may end in half a chunk
        raise damaged(f"{places} chunks of {size} bytes for an array of {result.nbytes}")
    if chunks.address == NOWHERE:
        return result
    pieces: Iterable[tuple[bytes, int]] = [(chunks.key, chunks.address)]
    if not chunks.key:
        pieces = tree_1(storage, chunks.address, 1, 8 + 8 * (len(shape) + 1))
    for number, (key, address) in enumerate(pieces):
        fields = Fields(key)
        stored, mask = fields.number(4), fields.number(4)
        origin = [fields.address() for _ in shape]
        if number >= places or any(at >= n for at, n in zip(origin, shape, strict=True)):
            raise damaged("a chunk outside its array")
        content = storage.read(address, stored)
        used = [f for bit, f in enumerate(filters) if not mask >> bit & 1]
        piece = _unfiltered(content, used, size, dtype.itemsize)
        where = tuple(
            slice(at, min(at + c, n)) for at, c, n in zip(origin, chunks.shape, shape, strict=True)
        )
        whole = np.frombuffer(piece, dtype).reshape(chunks.shape)
        result[where] = whole[tuple(slice(0, w.stop - w.start) for w in where)]
    return result


def _unfiltered(content: bytes, filters: list[int], size: int, element: int) -> bytes:
    for number in reversed(filters):
        if number == CHECKSUM:
            content = content[:-4]
        elif number == SHUFFLE:
            content = np.frombuffer(content, np.uint8).reshape(element, -1).T.tobytes()
        else:
            try:
                content = zlib.decompressobj().decompress(content, size + 4)
            except zlib.error as error:
                raise damaged(str(error)) from error
    if len(content) != size:
        raise damaged(f"a chunk of {len(content)} bytes, not {size}")
    return content
