"""TensorFlow Lite files as data: bounded, and checked before anything computes with them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.files import read_file
from phonebit.errors import ConversionError

Array = NDArray[Any]

IDENTIFIER: Final = b"TFL3"
MAX_FILE_BYTES: Final = (1 << 31) - 1
"""What offsets of one flatbuffer reach."""
MAX_TABLES: Final = 1 << 16
"""Tensors, operators or buffers of a model."""
MAX_ITEMS: Final = 1 << 22
"""Sizes, references and characters of all tables: parts of a file may be read many times."""
MAX_OPTIONS: Final = 1 << 16
"""Bytes of one operator's own options."""
MAX_AXES: Final = 8
DAMAGE: Final = (
    struct.error,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
)
"""What reading at wrong places raises: offsets out of range, tables that are missing."""


@dataclass
class Tensor:
    """One tensor.

    Attributes:
        name: Unique in the model.
        dtype: The element type, e.g. "float32".
        shape: With the batch.
        content: The bytes of a constant; None of what is computed.
        scales: Of quantized numbers: one, or one for each index of ``axis``; else empty.
        zeros: Their zero points, alike.
        axis: See ``scales``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    content: Array | None
    scales: Array
    zeros: Array
    axis: int

    @property
    def is_quantized(self) -> bool:
        """Whether its integers stand for other numbers: (integer - zero) * scale."""
        return self.scales.size > 0 and self.dtype in ("int8", "uint8", "int16")


@dataclass
class Operator:
    """One operator: its name, options by name, and the places of its tensors; -1 is left out."""

    name: str
    options: dict[str, Any]
    inputs: list[int]
    outputs: list[int]


@dataclass
class Model:
    """A model of one graph."""

    tensors: list[Tensor]
    operators: list[Operator]
    inputs: list[int]
    outputs: list[int]


def load_model(path: Path) -> tuple[Model, bytes]:
    """The model in a file, its constants unread, and the file's bytes.

    Raises:
        ConversionError: The package tflite is missing, or the file, or it holds no sound model.
    """
    content = read_file(path, "tflite", MAX_FILE_BYTES)
    if content[4:8] != IDENTIFIER:
        raise ConversionError("is no TensorFlow Lite file", expected=IDENTIFIER, got=content[4:8])
    try:
        return _Parser(content).model(), content
    except DAMAGE as error:
        raise ConversionError("is damaged: it refers to what is not there") from error


class _Parser:
    def __init__(self, content: bytes) -> None:
        import tflite

        self._schema: Any = tflite
        self._content = content
        self._root = tflite.Model.GetRootAs(content, 0)
        self._items = 0

    def model(self) -> Model:
        root = self._root
        if root.SubgraphsLength() != 1:
            raise ConversionError("has several graphs", expected=1, got=root.SubgraphsLength())
        graph = root.Subgraphs(0)
        buffers = self._tables(root.BuffersLength(), root.Buffers, self._buffer)
        _check_overlap(buffers)
        codes = self._tables(root.OperatorCodesLength(), root.OperatorCodes, self._code)
        tensors = self._tables(
            graph.TensorsLength(), graph.Tensors, lambda tensor: self._tensor(tensor, buffers)
        )
        seen: set[str] = set()
        for place, tensor in enumerate(tensors):
            if tensor.name in seen or not tensor.name:
                tensor.name = f"{tensor.name}#{place}"
            seen.add(tensor.name)
        operators = self._tables(
            graph.OperatorsLength(), graph.Operators, lambda each: self._operator(each, codes)
        )
        made = Model(
            tensors,
            operators,
            self._list(graph.InputsAsNumpy()),
            self._list(graph.OutputsAsNumpy()),
        )
        used = [made.inputs, made.outputs]
        used += [places for each in operators for places in (each.inputs, each.outputs)]
        if not all(-1 <= place < len(tensors) for places in used for place in places):
            raise IndexError("a tensor")
        return made

    def _tables(self, count: int, at: Callable[[int], Any], read: Callable[[Any], Any]) -> Any:
        if count > MAX_TABLES:
            raise ConversionError("has too many tables", expected=MAX_TABLES, got=count)
        return [read(at(index)) for index in range(count)]

    def _list(self, array: Any) -> list[Any]:
        """A vector of numbers; the package gives 0 for one that is not there."""
        size = int(np.size(array))
        self._count(size)
        return array.tolist() if isinstance(array, np.ndarray) else []

    def _text(self, text: bytes | None) -> str:
        self._count(len(text or b""))
        return "".join(c if c.isprintable() else "?" for c in (text or b"").decode())

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise ConversionError("is damaged: its lists and names overlap, or are too long")

    def _buffer(self, buffer: Any) -> Array | None:
        if buffer.Offset() or buffer.Size():
            raise ConversionError(
                "keeps data outside of its flatbuffer", hint="models over 2 GB are not supported"
            )
        content = buffer.DataAsNumpy()
        return content if isinstance(content, np.ndarray) and content.size else None

    def _code(self, code: Any) -> str:
        number = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
        if number == self._schema.BuiltinOperator.CUSTOM:
            return self._text(code.CustomCode())
        return str(self._schema.BUILTIN_OPCODE2NAME.get(number, f"operator {number}"))

    def _tensor(self, tensor: Any, buffers: list[Array | None]) -> Tensor:
        if tensor.Sparsity() is not None:
            raise ConversionError("has sparse tensors", hint="store them as dense ones")
        kinds = {number: name.lower() for name, number in vars(self._schema.TensorType).items()}
        shape = tuple(self._list(tensor.ShapeAsNumpy()))
        if len(shape) > MAX_AXES:
            raise ConversionError("a tensor of too many axes", expected=MAX_AXES, got=len(shape))
        scales: Array = np.zeros(0, np.float32)
        zeros, axis = np.zeros(0, np.int64), 0
        quantization = tensor.Quantization()
        if quantization is not None:
            scales = np.array(self._list(quantization.ScaleAsNumpy()), np.float32)
            zeros = np.array(self._list(quantization.ZeroPointAsNumpy()), np.int64)
            axis = quantization.QuantizedDimension()
        if zeros.size != scales.size:
            zeros = np.zeros(scales.size, np.int64)
        kind = kinds.get(tensor.Type(), "an unknown type")
        content = buffers[tensor.Buffer()]
        return Tensor(self._text(tensor.Name()), kind, shape, content, scales, zeros, axis)

    def _operator(self, operator: Any, codes: list[str]) -> Operator:
        inputs = self._list(operator.InputsAsNumpy())
        outputs = self._list(operator.OutputsAsNumpy())
        options = self._custom(operator) or self._builtin(operator)
        return Operator(codes[operator.OpcodeIndex()], options, inputs, outputs)

    def _custom(self, operator: Any) -> dict[str, Any]:
        """Options of an operator that TensorFlow Lite does not know: a FlexBuffers map."""
        from flatbuffers import flexbuffers

        if not 0 < operator.CustomOptionsLength() <= MAX_OPTIONS:
            return {}
        try:
            root = flexbuffers.GetRoot(operator.CustomOptionsAsNumpy().tobytes())
            if not root.IsMap or len(root.AsMap) > MAX_AXES * MAX_AXES:
                return {}
            names, values = root.AsMap.Keys, root.AsMap.Values
            return {
                names[index].AsKey: values[index].AsInt
                for index in range(len(names))
                if values[index].IsInt or values[index].IsBool
            }
        except Exception:  # damaged options of an operator that may have a format of its own
            return {}

    def _builtin(self, operator: Any) -> dict[str, Any]:
        """All numbers and lists of numbers in an operator's table of options, by their names."""
        kinds = {number: name for name, number in vars(self._schema.BuiltinOptions).items()}
        table = operator.BuiltinOptions()
        made = getattr(self._schema, str(kinds.get(operator.BuiltinOptionsType())), None)
        if table is None or made is None:
            return {}
        options = made()
        options.Init(table.Bytes, table.Pos)
        result: dict[str, Any] = {}
        names = set(vars(made))
        for name in names:
            if f"{name}AsNumpy" in names:
                result[name] = self._list(getattr(options, f"{name}AsNumpy")())
            elif not name.startswith(("_", "Init", "GetRoot")) and not name.endswith(
                ("AsNumpy", "IsNone", "Length", "HasIdentifier")
            ):
                result[name] = getattr(options, name)() if f"{name}Length" not in names else None
        return result


def _check_overlap(buffers: list[Array | None]) -> None:
    """Raises a ConversionError if a byte belongs to two buffers."""
    ranges = sorted((b.ctypes.data, b.ctypes.data + b.size) for b in buffers if b is not None)
    if any(begin < end for (_, end), (begin, _) in pairwise(ranges)):
        raise ConversionError("has buffers that overlap")
