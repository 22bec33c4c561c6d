"""Bytes of a file by their address, and the objects' headers: lists of typed messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, Final

from phonebit.budget import Account
from phonebit.errors import ConversionError

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
NOWHERE: Final = (1 << 64) - 1
"""The address of what does not exist."""
MAX_READS: Final = 1 << 20
"""Of one file: damaged trees may lead in circles."""
SHARED: Final = 2
"""The flag of a message that lies elsewhere."""


class Kind(IntEnum):
    """Messages that are read."""

    DATASPACE = 0x01
    LINK_INFO = 0x02
    DATATYPE = 0x03
    LINK = 0x06
    EXTERNAL_FILES = 0x07
    LAYOUT = 0x08
    FILTERS = 0x0B
    ATTRIBUTE = 0x0C
    CONTINUATION = 0x10
    SYMBOL_TABLE = 0x11
    ATTRIBUTE_INFO = 0x15


@dataclass(frozen=True)
class Message:
    """One message of an object's header."""

    kind: int
    flags: int
    body: Fields


def is_hdf5(path: Path) -> bool:
    """Whether a file begins as HDF5 does; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError:
        return False


class DamagedError(ConversionError):
    """A file is not as it should be."""


def damaged(what: str) -> DamagedError:
    """The error of a file of which something is not as it should be."""
    return DamagedError(f"the file is truncated or damaged: {what}")


class Fields:
    """Little-endian numbers, read one after the other from bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes after the position."""
        return len(self._content) - self.at

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            ConversionError: There are fewer.
        """
        if not 0 <= count <= self.left:
            raise damaged("a field ends too early")
        self.at += count
        return self._content[self.at - count : self.at]

    def without_end(self, count: int) -> Fields:
        """What is left but for the last bytes."""
        return Fields(self.take(max(self.left - count, 0)))

    def number(self, size: int) -> int:
        """The next unsigned number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def address(self) -> int:
        """The next address or length."""
        return self.number(8)

    def padded(self, count: int) -> bytes:
        """The next bytes, which fill a multiple of 8."""
        content = self.take(count)
        self.take(min(-count % 8, self.left))
        return content

    def expect(self, signature: bytes) -> None:
        """Steps over a signature.

        Raises:
            ConversionError: Something else stands there.
        """
        if self.take(len(signature)) != signature:
            raise damaged(f"no {signature.decode('ascii', 'replace')} where one should be")


class Storage:
    """A file, read by address and never beyond its end.

    Attributes:
        account: Of the texts that are made of it, which may be one object many times.
        heap: Address of the global heap that was read last, and its objects.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.account = Account(DamagedError)
        self.heap: tuple[int, dict[int, bytes]] = NOWHERE, {}
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self._reads = 0

    def read(self, address: int, count: int) -> bytes:
        """Bytes of the file.

        Raises:
            ConversionError: They are not all there, or far too much was read already.
        """
        self._reads += 1
        if self._reads > MAX_READS:
            raise damaged("it leads in circles")
        if not 0 <= address <= address + count <= self._size:
            raise damaged(f"{count} bytes at {address}, of {self._size}")
        self._file.seek(address)
        content = self._file.read(count)
        if len(content) != count:
            raise damaged("it became shorter")
        return content

    def fields(self, address: int, count: int) -> Fields:
        """Bytes of the file as fields; fewer at its end."""
        return Fields(self.read(address, max(min(count, self._size - address), 0)))

    def root(self) -> int:
        """Address of the root group's header."""
        head = self.fields(0, 96)
        head.expect(SIGNATURE)
        version = head.number(1)
        if version in (0, 1):
            head.take(4)
            sizes = head.number(1), head.number(1)
            head.take(9 if version == 0 else 13)
            base = head.address()
            head.take(8)
            end = head.address()
            head.take(8 + 8)
        elif version in (2, 3):
            sizes = head.number(1), head.number(1)
            head.take(1)
            base = head.address()
            head.take(8)
            end = head.address()
        else:
            raise damaged(f"superblock version {version}")
        if sizes != (8, 8) or base != 0:
            raise damaged(f"addresses of {sizes} bytes from {base}")
        if end > self._size:
            raise damaged(f"{self._size} bytes of {end}")
        return head.address()

    def messages(self, address: int) -> list[Message]:
        """The header of an object."""
        start = self.read(address, 4)
        found = self._messages_2(address) if start == b"OHDR" else self._messages_1(address)
        return list(found)

    def _messages_1(self, address: int) -> Iterator[Message]:
        head = self.fields(address, 16)
        if head.number(1) != 1:
            raise damaged(f"no object at {address}")
        head.take(7)
        blocks = [self.fields(address + 16, head.number(4))]
        seen: set[int] = set()
        while blocks:
            block = blocks.pop(0)
            while block.left >= 8:
                kind, size, flags = block.number(2), block.number(2), block.number(1)
                block.take(3)
                message = Message(kind, flags, Fields(block.take(size)))
                if kind == Kind.CONTINUATION:
                    blocks.append(self._continuation(message.body, seen))
                else:
                    yield message

    def _messages_2(self, address: int) -> Iterator[Message]:
        head = self.fields(address, 64)
        head.take(5)
        flags = head.number(1)
        head.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
        size = head.number(1 << (flags & 3))
        blocks = [self.fields(address + head.at, size)]
        seen: set[int] = set()
        while blocks:
            block = blocks.pop(0)
            while block.left >= (6 if flags & 4 else 4):
                kind, size, own = block.number(1), block.number(2), block.number(1)
                block.take(2 if flags & 4 else 0)
                message = Message(kind, own, Fields(block.take(size)))
                if kind == Kind.CONTINUATION:
                    block_2 = self._continuation(message.body, seen)
                    block_2.expect(b"OCHK")
                    blocks.append(block_2.without_end(4))
                else:
                    yield message

    def _continuation(self, body: Fields, seen: set[int]) -> Fields:
        """A further block of a header; each block lies elsewhere."""
        start, length = body.address(), body.address()
        if start in seen:
            raise damaged("a header that leads in circles")
        seen.add(start)
        return self.fields(start, length)
