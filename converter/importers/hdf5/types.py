"""What elements and arrays are: data types, shapes, and strings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.budget import Kind
from phonebit.converter.importers.hdf5.heaps import global_object
from phonebit.converter.importers.hdf5.storage import NOWHERE, Fields, Storage, damaged

INTEGER: Final = 0
FLOAT: Final = 1
STRING: Final = 3
VARIABLE: Final = 9
FLOATS: Final = {2: (10, 5), 4: (23, 8), 8: (52, 11)}
"""Bits of mantissa and exponent, by bytes."""
MAX_STRINGS: Final = 1 << 20


@dataclass(frozen=True)
class ElementType:
    """The type of an array's elements: numbers of NumPy's, or strings.

    ``numbers`` is None of strings, which are ``size`` bytes each, or refer to a heap.
    """

    size: int
    numbers: np.dtype[np.generic] | None = None
    in_heap: bool = False


def element_type(body: Fields) -> ElementType:
    """Reads a data type.

    Raises:
        ConversionError: Keras writes no such type.
    """
    kind = body.number(1) & 15
    bits, size = body.number(3), body.number(4)
    order = ">" if bits & 1 else "<"
    if kind == INTEGER and size in (1, 2, 4, 8):
        return ElementType(size, np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if kind == FLOAT and size in FLOATS:
        body.take(5)
        exponent, _, mantissa = body.number(1), body.number(1), body.number(1)
        if (mantissa, exponent) == FLOATS[size] and not bits & 64:
            return ElementType(size, np.dtype(f"{order}f{size}"))
    if kind == STRING and size:
        return ElementType(size)
    if kind == VARIABLE and bits & 15 == 1 and size == 16:
        return ElementType(size, in_heap=True)
    raise damaged(f"a type that Keras does not write (class {kind}, {size} bytes)")


def shape_of(body: Fields) -> tuple[int, ...]:
    """Reads a data space; () of a single value.

    Raises:
        ConversionError: It has none, or is of an unknown version.
    """
    version, rank = body.number(1), body.number(1)
    body.take(1)
    if version == 1:
        body.take(5)
    elif version != 2 or body.number(1) == 2 or rank > 32:
        raise damaged("no shape")
    return tuple(body.address() for _ in range(rank))


def values_of(
    storage: Storage, kind: ElementType, shape: tuple[int, ...], content: Fields
) -> str | list[str] | NDArray[np.generic]:
    """The value of an attribute: a string, a flat list of strings, or an array of numbers."""
    count = math.prod(shape)
    if kind.numbers is not None:
        data = content.take(count * kind.size)
        return np.frombuffer(data, kind.numbers).reshape(shape)
    if count > MAX_STRINGS:
        raise damaged(f"{count} strings")
    texts = [_text(storage, kind, Fields(content.take(kind.size))) for _ in range(count)]
    return texts if shape else texts[0]


def _text(storage: Storage, kind: ElementType, element: Fields) -> str:
    if not kind.in_heap:
        storage.account.spend(Kind.TEXT, kind.size)
        return element.take(kind.size).split(b"\0")[0].decode("utf-8", "replace")
    length, heap, index = element.number(4), element.address(), element.number(4)
    if length == 0 or heap in (0, NOWHERE):
        return ""
    storage.account.spend(Kind.TEXT, length)
    content = global_object(storage, heap, index)
    return content[:length].split(b"\0")[0].decode("utf-8", "replace")
