"""Stored tensors as arrays: sizes are compared with what is there before anything is allocated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.errors import first_line
from phonebit.errors import ConversionError

Array = NDArray[Any]

MAX_ELEMENTS: Final = 1 << 28
MAX_AXES: Final = 32


class Tensors:
    """Reads tensors of one model.

    Tensors outside of the model's own file are read from regular files in its folder only, and no
    byte of them belongs to two tensors.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._taken: dict[Path, list[tuple[int, int, str]]] = {}

    def array(self, tensor: Any, name: str) -> Array:
        """A tensor's values.

        Args:
            tensor: A ``TensorProto``.
            name: What it is called in messages.

        Raises:
            ConversionError: Its type is no number, its size is not that of its data, or its data
                lies where it may not be read.
        """
        from onnx import TensorProto, helper, numpy_helper

        kind = tensor.data_type
        if kind in (TensorProto.STRING, TensorProto.UNDEFINED) or kind not in _kinds():
            raise ConversionError("a tensor of no numbers", where=name, got=_kind_name(kind))
        dims = tuple(int(size) for size in tensor.dims)
        if min(dims, default=0) < 0 or len(dims) > MAX_AXES or math.prod(dims) > MAX_ELEMENTS:
            raise ConversionError(
                "a tensor of impossible size", where=name, expected=MAX_ELEMENTS, got=dims
            )
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, name, dims, dtype)
        if tensor.HasField("raw_data"):
            check_size(name, math.prod(dims) * dtype.itemsize, len(tensor.raw_data), dims)
            little = dtype.newbyteorder("<")
            return np.frombuffer(tensor.raw_data, little).astype(dtype).reshape(dims)
        stored = len(getattr(tensor, helper.tensor_dtype_to_field(kind)))
        check_size(name, math.prod(dims), stored, dims, "elements")
        return np.array(numpy_helper.to_array(tensor))

    def _external(self, tensor: Any, name: str, dims: tuple[int, ...], dtype: Any) -> Array:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self._data_file(entries.get("location", ""), name)
        size = math.prod(dims) * dtype.itemsize
        offset = _number(entries.get("offset", "0"), name)
        length = _number(entries.get("length", str(size)), name)
        check_size(name, size, length, dims)
        if offset + size > path.stat().st_size:
            got = f"{path.stat().st_size} bytes in {path.name}"
            raise ConversionError(
                "its data is cut off", where=name, expected=f"{offset + size} bytes", got=got
            )
        ranges = self._taken.setdefault(path, [])
        for begin, end, other in ranges:
            if offset < end and begin < offset + size:
                raise ConversionError(f"its data overlaps that of {other!r}", where=name)
        ranges.append((offset, offset + size, name))
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(size)
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype).reshape(dims)

    def _data_file(self, location: str, name: str) -> Path:
        """A file in the model's own folder, or in one below it."""
        if self._folder is None:
            raise ConversionError(
                "its data is not in the model", where=name, hint="load it with its external data"
            )
        folder = self._folder.resolve()
        try:
            path = (folder / location).resolve()
            is_file = path.is_file()
        except (OSError, ValueError) as error:
            raise ConversionError(
                f"its data lies where no file can be: {first_line(error)}", where=name
            ) from error
        if not location or not path.is_relative_to(folder) or path == folder:
            raise ConversionError(
                "its data is outside of the model's folder", where=name, got=repr(location)
            )
        if not is_file:
            raise ConversionError("its data file is missing", where=name, got=repr(location))
        return path


def _kinds() -> frozenset[int]:
    from onnx import TensorProto

    integers = [f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    names = ["FLOAT", "FLOAT16", "DOUBLE", "BOOL", *integers]
    return frozenset(getattr(TensorProto, name) for name in names)


def _kind_name(kind: int) -> str:
    from onnx import TensorProto

    known = TensorProto.DataType.DESCRIPTOR.values_by_number
    return known[kind].name.lower() if kind in known else f"type {kind}"


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise ConversionError("its data has no position", where=name, got=repr(text))
    return int(text)


def check_size(
    name: str, expected: int, got: int, dims: tuple[int, ...], unit: str = "bytes"
) -> None:
    """Raises a ConversionError unless a tensor has as much data as its shape asks for."""
    if expected != got:
        raise ConversionError(
            f"a tensor of shape {dims} with data of another size",
            where=name,
            expected=f"{expected} {unit}",
            got=got,
        )
