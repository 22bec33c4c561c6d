"""Refuses HDF5 files on which the HDF5 library would never come back.

The library reads a global heap (where strings such as ``model_config`` live) object by object, each
header saying how long the object is. A damaged header of length 0 keeps it in an endless loop, seen
with HDF5 1.14. Everything else that is damaged it reports as an error.

Source: HDF5 File Format Specification 3.0, III.E, "Disk Format: Level 1E - Global Heap".
"""

from __future__ import annotations

import struct
from typing import IO, Final

from phonebit.errors import ConversionError

SIGNATURE: Final = b"GCOL\x01\x00\x00\x00"
HEADER_BYTES: Final = 16
MAX_HEAP_BYTES: Final = 256 << 20
_BLOCK_BYTES: Final = 1 << 22


def check_global_heaps(file: IO[bytes]) -> None:
    """Walks every global heap collection as the library would.

    Args:
        file: An HDF5 file with 8-byte lengths (all that h5py writes), at any position.

    Raises:
        ConversionError: an object's length leads nowhere.
    """
    for start in _signatures(file):
        file.seek(start + len(SIGNATURE))
        (size,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
        if size > MAX_HEAP_BYTES:
            continue  # weights that look like a signature; the library refuses such a heap itself
        _check_objects(file.read(max(size - HEADER_BYTES, 0)))


def _signatures(file: IO[bytes]) -> list[int]:
    """Positions at which a heap may begin; the library keeps them at multiples of 8."""
    found = []
    file.seek(0)
    position, tail = 0, b""
    while block := file.read(_BLOCK_BYTES):
        data = tail + block
        at = data.find(SIGNATURE)
        while at >= 0:
            found.append(position - len(tail) + at)
            at = data.find(SIGNATURE, at + 1)
        position += len(block)
        tail = data[-len(SIGNATURE) + 1 :]
    return found


def _check_objects(objects: bytes) -> None:
    at = 0
    while at + HEADER_BYTES <= len(objects):
        index, _, _, length = struct.unpack_from("<HHIQ", objects, at)
        # Free space (index 0) counts its header in its length, objects are padded to 8 bytes.
        step = length if index == 0 else HEADER_BYTES + (length + 7) // 8 * 8
        if step == 0 or at + step > len(objects):
            raise ConversionError("the file is damaged: an HDF5 global heap is inconsistent")
        at += step
