"""Fails where an ELF file does not load on a phone with pages of 16 kB.

python check_pages.py FILE...

Such a phone maps a file's segments as they are aligned in it: each that is loaded needs at least
16 kB (the alignment of its program header).
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

PAGE_BYTES = 16384
PT_LOAD = 1
# Of ELF's 32-bit and 64-bit class: where the file header has the offset, size and number of
# program headers, and where a program header has the alignment.
LAYOUTS = {1: ("<I", 28, 42, "<I", 28), 2: ("<Q", 32, 54, "<Q", 48)}


def alignments(elf: bytes) -> list[int]:
    """Bytes to which each segment that is loaded is aligned.

    Raises:
        ValueError: not a little-endian ELF file, or none of which anything is loaded.
    """
    if elf[:4] != b"\x7fELF" or elf[4] not in LAYOUTS or elf[5] != 1:
        raise ValueError("not a little-endian ELF file")
    offset_type, offset_at, sizes_at, align_type, align_at = LAYOUTS[elf[4]]
    (offset,) = struct.unpack_from(offset_type, elf, offset_at)
    size, count = struct.unpack_from("<HH", elf, sizes_at)
    headers = [offset + size * index for index in range(count)]
    loaded = [at for at in headers if struct.unpack_from("<I", elf, at)[0] == PT_LOAD]
    if not loaded:
        raise ValueError("nothing of this file is loaded: not a program or shared library")
    return [struct.unpack_from(align_type, elf, at + align_at)[0] for at in loaded]


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    failed = False
    for name in arguments:
        smallest = min(alignments(Path(name).read_bytes()))
        failed |= smallest < PAGE_BYTES
        print(f"{name}: segments aligned to {smallest} bytes, expected at least {PAGE_BYTES}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
