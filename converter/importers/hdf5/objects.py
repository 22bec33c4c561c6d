"""Groups, with their attributes and what is in them, and datasets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.hdf5.arrays import (
    Chunks,
    filters_of,
    layout_of,
    read_chunks,
)
from phonebit.converter.importers.hdf5.heaps import (
    FractalHeap,
    local_name,
    tree_1,
    tree_2,
)
from phonebit.converter.importers.hdf5.storage import (
    NOWHERE,
    SHARED,
    Fields,
    Kind,
    Message,
    Storage,
    damaged,
)
from phonebit.converter.importers.hdf5.types import element_type, shape_of, values_of

Attribute = str | list[str] | NDArray[np.generic]


@contextmanager
def open_hdf5(file: IO[bytes] | Path) -> Iterator[Group]:
    """The root group of a file; it is read as long as the context lasts.

    Raises:
        ConversionError: It is damaged, or of another kind. So does whatever is read of it.
        OSError: It cannot be read.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            yield _root(opened)
    else:
        yield _root(file)


def _root(file: IO[bytes]) -> Group:
    storage = Storage(file)
    return Group(storage, storage.messages(storage.root()))


class Object:
    """What groups and datasets share: a header."""

    def __init__(self, storage: Storage, messages: list[Message]) -> None:
        self._storage = storage
        self._messages = messages

    def _bodies(self, kind: Kind) -> Iterator[Fields]:
        for message in self._messages:
            if message.kind == kind:
                if message.flags & SHARED:
                    raise damaged("a header that lies in another object")
                message.body.at = 0
                yield message.body

    def _body(self, kind: Kind) -> Fields:
        body = next(self._bodies(kind), None)
        if body is None:
            raise damaged(f"an object without {kind.name.lower()}")
        return body

    def _dense(self, kind: Kind, skipped: int, before: int) -> Iterator[Fields]:
        """What lies in a heap of its own because it is much: links or attributes."""
        for body in self._bodies(kind):
            body.take(1)
            flags = body.number(1)
            body.take(skipped if flags & 1 else 0)
            heap, tree = body.address(), body.address()
            if heap != NOWHERE and tree != NOWHERE:
                objects = FractalHeap.at(self._storage, heap)
                for record in tree_2(self._storage, tree):
                    record.take(before)
                    yield objects.object(record)


class Group(Object):
    """A folder of groups and datasets, with attributes."""

    @cached_property
    def attributes(self) -> Attributes:
        """Strings, lists of strings or arrays by name."""
        bodies = [*self._bodies(Kind.ATTRIBUTE), *self._dense(Kind.ATTRIBUTE_INFO, 2, 0)]
        return Attributes(self._storage, bodies)

    def names(self) -> list[str]:
        """What is in the group, sorted."""
        return sorted(self._links)

    def child(self, path: str) -> Group | Dataset | None:
        """What lies under a path inside this very file, or None."""
        found: Group | Dataset | None = self
        for part in path.split("/"):
            address = found._links.get(part) if isinstance(found, Group) else None
            if address is None:
                return None
            messages = self._storage.messages(address)
            is_array = any(message.kind == Kind.LAYOUT for message in messages)
            found = (Dataset if is_array else Group)(self._storage, messages)
        return found

    @cached_property
    def _links(self) -> dict[str, int]:
        """Addresses by name; links to elsewhere are left out."""
        links: dict[str, int] = {}
        for body in self._bodies(Kind.SYMBOL_TABLE):
            tree, heap = body.address(), body.address()
            for _, node in tree_1(self._storage, tree, 0, 8):
                links.update(_symbols(self._storage, node, heap))
        for body in [*self._bodies(Kind.LINK), *self._dense(Kind.LINK_INFO, 8, 4)]:
            links.update(_link(body))
        return links


class Attributes(Mapping[str, Attribute]):
    """Each is understood when it is asked for: Keras's own are of types that are known here."""

    def __init__(self, storage: Storage, bodies: list[Fields]) -> None:
        self._storage = storage
        self._parts = dict(map(_attribute_parts, bodies))

    def __getitem__(self, name: str) -> Attribute:
        kind, space, data = self._parts[name]
        shape = shape_of(Fields(space))
        return values_of(self._storage, element_type(Fields(kind)), shape, Fields(data))

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def _attribute_parts(body: Fields) -> tuple[str, tuple[bytes, bytes, bytes]]:
    """The name of an attribute; its type, its shape and its data."""
    version, flags = body.number(1), body.number(1)
    if version not in (1, 2, 3) or (version > 1 and flags):
        raise damaged("an attribute of another version, or whose type lies in another object")
    sizes = body.number(2), body.number(2), body.number(2)
    body.take(1 if version == 3 else 0)
    name, kind, space = (body.padded(n) if version == 1 else body.take(n) for n in sizes)
    text = name.split(b"\0")[0].decode("utf-8", "replace")
    return text, (kind, space, body.take(body.left))


class Dataset(Object):
    """An array of numbers."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return shape_of(self._body(Kind.DATASPACE))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Its elements; of strings NumPy's ``object``."""
        return element_type(self._body(Kind.DATATYPE)).numbers or np.dtype(object)

    @property
    def size_bytes(self) -> int:
        """Of its elements in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_in_file(self) -> bool:
        """Whether its numbers are said to be in this very file."""
        return next(self._bodies(Kind.EXTERNAL_FILES), None) is None

    def read(self) -> NDArray[Any]:
        """The array.

        Raises:
            ConversionError: It is not all there, or not numbers.
        """
        if self.dtype == object or not self.is_in_file:
            raise damaged("an array that is not of numbers, or in another file")
        layout = layout_of(self._body(Kind.LAYOUT), len(self.shape))
        if isinstance(layout, Chunks):
            filters = next((filters_of(body) for body in self._bodies(Kind.FILTERS)), [])
            return read_chunks(self._storage, layout, filters, self.shape, self.dtype)
        if isinstance(layout, tuple):
            address, stored = layout
            held = 0 if address == NOWHERE else stored
            if held < self.size_bytes:
                raise damaged(f"an array needs {self.size_bytes} bytes, the file holds {held}")
            layout = self._storage.read(address, self.size_bytes) if self.size_bytes else b""
        content = Fields(layout).take(self.size_bytes)
        return np.frombuffer(content, self.dtype).reshape(self.shape)


def _symbols(storage: Storage, address: int, heap: int) -> Iterator[tuple[str, int]]:
    head = storage.fields(address, 8)
    head.expect(b"SNOD")
    head.take(2)
    count = head.number(2)
    entries = storage.fields(address + 8, 40 * count)
    for _ in range(count):
        name, header, cached = entries.address(), entries.address(), entries.number(4)
        entries.take(20)
        if cached != 2:  # a soft link
            yield local_name(storage, heap, name), header


def _link(body: Fields) -> Iterator[tuple[str, int]]:
    if body.number(1) != 1:
        raise damaged("a link of another version")
    flags = body.number(1)
    kind = body.number(1) if flags & 8 else 0
    body.take((8 if flags & 4 else 0) + (1 if flags & 16 else 0))
    name = body.take(body.number(1 << (flags & 3))).decode("utf-8", "replace")
    if kind == 0:
        yield name, body.address()
