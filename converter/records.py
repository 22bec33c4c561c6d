"""One record of a ``.pbit`` file with what its fields refer to, as operators read and write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import TensorType, Window
from phonebit.format.constants import ConstantPool
from phonebit.format.contents import FileContents, Records
from phonebit.format.reader import constant_array
from phonebit.format.records import NONE, DataType

SIDES = ("top", "left", "bottom", "right")


@dataclass
class RecordReader:
    """A record of an op, or of one of its epilogue operations.

    Attributes:
        contents: The file.
        record: The record.
        main: Type of the op's first operand.
        output: Type of its output.
        inputs: Numbers of the tensors that it reads; epilogue operations append theirs.
    """

    contents: FileContents
    record: np.void
    main: TensorType
    output: TensorType
    inputs: list[int]

    def of(self, record: np.void) -> RecordReader:
        """Another record of the same op."""
        return replace(self, record=record)

    def integer(self, field: str) -> int:
        """An integer field."""
        return int(self.record[field])

    def number(self, field: str) -> float:
        """A float32 field."""
        return float(self.record[field])

    def has(self, field: str) -> bool:
        """Whether the record has what this field refers to."""
        return self.integer(field) != NONE

    def constant_type(self, field: str) -> DataType:
        """Element type of the constant that a field refers to."""
        return DataType(int(self.contents.constants[self.integer(field)]["dtype"]))

    def constant(self, field: str) -> NDArray[Any]:
        """Its elements (BIT: words)."""
        return constant_array(self.contents, self.integer(field))

    def operand(self) -> int:
        """The op's input number of the tensor that an epilogue operation reads."""
        self.inputs.append(self.integer("tensor"))
        return len(self.inputs) - 1

    def pads(self) -> tuple[int, int, int, int]:
        """(top, left, bottom, right)."""
        top, left, bottom, right = (self.integer(f"pad_{side}") for side in SIDES)
        return top, left, bottom, right

    def window(self) -> Window:
        """The sliding window."""
        kernel, strides, dilation = (
            (self.integer(f"{name}_h"), self.integer(f"{name}_w"))
            for name in ("kernel", "stride", "dilation")
        )
        return Window(kernel, strides, dilation, self.pads())


@dataclass
class RecordWriter:
    """A record of an op, or of one of its epilogue operations, that is being filled.

    Attributes:
        record: One zeroed record.
        constants: Receives arrays.
        inputs: Numbers of the tensors that the op reads.
    """

    record: Records
    constants: ConstantPool
    inputs: Sequence[int]

    def of(self, record: Records) -> RecordWriter:
        """Another record of the same op."""
        return replace(self, record=record)

    def put(self, **fields: float) -> None:
        """Sets fields to numbers."""
        for name, value in fields.items():
            self.record[name] = value

    def constant(self, field: str, array: NDArray[Any], dtype: DataType) -> None:
        """Stores an array (BIT: already packed words) and makes a field refer to it."""
        self.record[field] = self.constants.add(array, dtype)

    def operand(self, number: int) -> None:
        """Makes an epilogue operation read the op's input of this number."""
        self.record["tensor"] = self.inputs[number]

    def pads(self, pads: tuple[int, int, int, int]) -> None:
        """(top, left, bottom, right)."""
        for side, pixels in zip(SIDES, pads, strict=True):
            self.record[f"pad_{side}"] = pixels

    def window(self, window: Window) -> None:
        """The sliding window."""
        pairs = {"kernel": window.kernel, "stride": window.strides, "dilation": window.dilation}
        for name, (height, width) in pairs.items():
            self.record[f"{name}_h"], self.record[f"{name}_w"] = height, width
        self.pads(window.pads)
