"""Weights and parameters in the file's DATA section: one layout, equal arrays stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.format.bits import pack_signs, unpack_signs
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


def weight_words(weights: NDArray[Any], depthwise: bool) -> NDArray[np.uint32]:
    """Packs -1/+1 weights (Cout, KH, KW, Cin / groups) into the file's words.

    Ordinary filters pack their input channels; depthwise ones, (C, KH, KW, 1), pack the channels
    themselves, because those are what lies side by side in the activations they meet.
    """
    return pack_signs(weights[..., 0].transpose(1, 2, 0) if depthwise else weights)


def weights_from_words(
    words: NDArray[np.uint32], shape: tuple[int, int, int, int], depthwise: bool
) -> NDArray[np.int8]:
    """The inverse of ``weight_words`` for weights of ``shape``."""
    cout, kernel_h, kernel_w, per_group = shape
    count = cout if depthwise else per_group
    rows = (kernel_h, kernel_w) if depthwise else (cout, kernel_h, kernel_w)
    signs = unpack_signs(words.reshape(*rows, -1), count)
    return signs.transpose(2, 0, 1)[..., None] if depthwise else signs
