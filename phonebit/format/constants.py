"""Weights and parameters in the file's DATA section: one layout, equal arrays stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.format.contents import CONSTANT_TYPES, Records
from phonebit.format.records import CONSTANT, DataType
from phonebit.format.writer import align


class ConstantPool:
    """Collects constants; an array that was added before gets the old index."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._records: list[tuple[int, int, int, int]] = []
        self._known: dict[tuple[DataType, bytes], int] = {}

    def add(self, array: NDArray[Any], dtype: DataType) -> int:
        """Stores an array (BIT: already packed words) and returns its index."""
        stored = CONSTANT_TYPES[dtype]
        payload = np.ascontiguousarray(array, stored).tobytes()
        key = (dtype, payload)
        if key not in self._known:
            self._data.extend(bytes(align(len(self._data)) - len(self._data)))
            self._known[key] = len(self._records)
            count = len(payload) // stored.itemsize
            self._records.append((dtype, count, len(self._data), len(payload)))
            self._data.extend(payload)
        return self._known[key]

    def records(self) -> Records:
        """The CONSTANTS section."""
        table = np.zeros(len(self._records), CONSTANT)
        for record, (dtype, count, offset, size) in zip(table, self._records, strict=True):
            record["dtype"], record["count"] = dtype, count
            record["offset"], record["size_bytes"] = offset, size
        return table

    def data(self) -> bytes:
        """The DATA section."""
        return bytes(self._data)
