"""Where HDF5 keeps what has no fixed size: names, strings, and many links or attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phonebit.budget import Kind
from phonebit.converter.importers.hdf5.storage import NOWHERE, Fields, Storage, damaged

MAX_DEPTH = 16
"""Of trees and of blocks of blocks."""


def local_name(storage: Storage, heap: int, offset: int) -> str:
    """A name in the heap of a group."""
    head = storage.fields(heap, 32)
    head.expect(b"HEAP")
    head.take(4)
    size = head.address()
    head.address()
    start = head.address()
    if offset >= size:
        raise damaged("a name outside its heap")
    content = storage.fields(start + offset, min(size - offset, 1 << 16))
    return content.take(content.left).split(b"\0")[0].decode("utf-8", "replace")


def global_object(storage: Storage, heap: int, wanted: int) -> bytes:
    """An object of a global heap: the content of a string without fixed length."""
    if storage.heap[0] != heap:
        storage.heap = heap, dict(_global_objects(storage, heap))
    if wanted not in storage.heap[1]:
        raise damaged("a string that is in no global heap")
    return storage.heap[1][wanted]


def _global_objects(storage: Storage, heap: int) -> Iterator[tuple[int, bytes]]:
    head = storage.fields(heap, 16)
    head.expect(b"GCOL")
    head.take(4)
    size = head.address() - 16
    storage.account.spend(Kind.TEXT, size)
    objects = storage.fields(heap + 16, size)
    while objects.left >= 16:
        index = objects.number(2)
        objects.take(6)
        size = objects.address()
        if index == 0:
            break
        yield index, objects.padded(size)


def tree_1(storage: Storage, address: int, kind: int, key_size: int) -> Iterator[tuple[bytes, int]]:
    """(key, address) of every leaf of a tree of version 1."""
    yield from _tree_1(storage, address, kind, key_size, MAX_DEPTH)


def _tree_1(
    storage: Storage, address: int, kind: int, key_size: int, depth: int
) -> Iterator[tuple[bytes, int]]:
    head = storage.fields(address, 24)
    head.expect(b"TREE")
    found, level, count = head.number(1), head.number(1), head.number(2)
    if found != kind or level >= depth:
        raise damaged("a tree of another kind, or too deep")
    entries = storage.fields(address + 24, count * (key_size + 8))
    for _ in range(count):
        key, child = entries.take(key_size), entries.address()
        if level:
            yield from _tree_1(storage, child, kind, key_size, level)
        else:
            yield key, child


def tree_2(storage: Storage, address: int) -> Iterator[Fields]:
    """Every record of a tree of version 2."""
    head = storage.fields(address, 38)
    head.expect(b"BTHD")
    head.take(2)
    node_size, record_size, depth = head.number(4), head.number(2), head.number(2)
    head.take(2)
    root, count = head.address(), head.number(2)
    if record_size == 0 or depth >= MAX_DEPTH or node_size <= 10 + record_size:
        raise damaged("a tree without records")
    if root != NOWHERE:
        yield from _Tree2(storage, node_size, record_size, depth).records(root, count, depth)


class _Tree2:
    """Sizes of a tree's fields follow from how many records can be in a node."""

    def __init__(self, storage: Storage, node_size: int, record_size: int, depth: int) -> None:
        self._storage = storage
        self._node_size, self._record_size = node_size, record_size
        maximum = (node_size - 10) // record_size
        self._count_size = _bytes_of(maximum)
        self._total_sizes = [0]
        total = maximum
        for _ in range(depth):
            pointer = 8 + self._count_size + self._total_sizes[-1]
            maximum = (node_size - 10 - pointer) // (record_size + pointer)
            total = (maximum + 1) * total + maximum
            self._total_sizes.append(_bytes_of(max(total, 0)))

    def records(self, address: int, count: int, depth: int) -> Iterator[Fields]:
        node = self._storage.fields(address, self._node_size)
        node.expect(b"BTIN" if depth else b"BTLF")
        node.take(2)
        for _ in range(count):
            yield Fields(node.take(self._record_size))
        for _ in range(count + 1 if depth else 0):
            child, inner = node.address(), node.number(self._count_size)
            node.take(self._total_sizes[depth - 1])
            yield from self.records(child, inner, depth - 1)


def _bytes_of(number: int) -> int:
    return (number.bit_length() + 7) // 8


@dataclass(frozen=True)
class FractalHeap:
    """Objects in blocks that double in size, by an id of offset and length."""

    storage: Storage
    offset_size: int
    length_size: int
    width: int
    first_size: int
    largest_direct: int
    root: int
    rows: int

    @staticmethod
    def at(storage: Storage, address: int) -> FractalHeap:
        """Reads the header of a heap."""
        head = storage.fields(address, 142)
        head.expect(b"FRHP")
        head.take(3)
        filters = head.number(2)
        head.take(1)
        largest_object = head.number(4)
        head.take(12 * 8)
        width, first_size, largest_direct = head.number(2), head.address(), head.address()
        bits = head.number(2)
        head.take(2)
        root, rows = head.address(), head.number(2)
        if filters or not (width and 0 < first_size <= largest_direct < 1 << 40 and bits <= 64):
            raise damaged("a heap that is compressed or has no blocks")
        length_size = _bytes_of(min(largest_direct, largest_object))
        sizes = (bits + 7) // 8, length_size
        return FractalHeap(storage, *sizes, width, first_size, largest_direct, root, rows)

    def object(self, identity: Fields) -> Fields:
        """An object by its id."""
        kind = identity.number(1)
        if kind >> 4 == 2:  # tiny: it stands in its id
            return Fields(identity.take((kind & 15) + 1))
        if kind >> 4 != 0:
            raise damaged("an object of a kind that Keras does not write")
        offset, length = identity.number(self.offset_size), identity.number(self.length_size)
        return Fields(self.storage.read(self._place(self.root, self.rows, offset), length))

    def _place(self, block: int, rows: int, offset: int, depth: int = 0) -> int:
        """The address of an offset in a block: direct if it has no rows."""
        if rows == 0:
            return block + offset
        head = 13 + self.offset_size
        for row in range(min(rows, 64)):
            size = self.first_size << max(row - 1, 0)
            column = offset // size
            if column < self.width:
                entry = head + 8 * (row * self.width + column)
                child = self.storage.fields(block + entry, 8).address()
                below = 0 if size <= self.largest_direct else self._rows_of(size)
                if depth > MAX_DEPTH:
                    break
                return self._place(child, below, offset - column * size, depth + 1)
            offset -= self.width * size
        raise damaged("an object outside its heap")

    def _rows_of(self, size: int) -> int:
        return max((size // (self.first_size * self.width)).bit_length(), 1)
