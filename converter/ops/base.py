"""The kinds of operators, and what an operator of each kind has to say.

A source operator defines one value: ``ValueOperator``. One that a file can hold is an
``EngineOperator``, too; if it has an epilogue, see ``with_epilogue.py``. A class that lacks a
member cannot be instantiated, and mypy says so; if a file can hold it, importing the package fails.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import numpy as np

from phonebit.converter.ir import (
    Array,
    Directions,
    FloatArray,
    Node,
    Operator,
    TensorType,
    Values,
)
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BIT: Final = DataType.BIT
U8: Final = DataType.U8
F32: Final = DataType.F32

Kind = TypeVar("Kind", bound=IntEnum)
DataclassType = TypeVar("DataclassType", bound="DataclassInstance")


class ValueOperator(Operator):
    """Defines one value, of whatever type, and has no epilogue."""

    @abstractmethod
    def value_type(self, operands: list[TensorType]) -> TensorType:
        """The type of the value.

        Raises:
            ConversionError: The operands do not fit, or the operator contradicts itself.
        """

    @abstractmethod
    def compute(self, operands: list[Array]) -> Array:
        """The value (N, H, W, C)."""

    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        if node.value is None or node.bits is not None:
            name = type(self).__name__
            raise ConversionError(f"{name} defines exactly one value, its main one")
        return {node.value: self.value_type(operands)}

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        return {node.outputs[0]: self.compute(operands)}


class Numbered(ABC):
    """Has a record in the file.

    Attributes:
        kinds: Its numbers in the file: one, or one for each variant.
    """

    kinds: ClassVar[tuple[Any, ...]]

    @property
    def kind(self) -> int:
        """Its number in the file."""
        return int(self.kinds[0])

    @abstractmethod
    def write(self, record: RecordWriter) -> None:
        """Fills the record's fields; its number, and what all records have, are filled already."""

    @classmethod
    @abstractmethod
    def read(cls, record: RecordReader) -> Self:
        """What a record of a sound file holds."""

    @classmethod
    def by_kind(cls, kinds: type[Kind]) -> dict[Kind, type[Self]]:
        """The class for each number in the file.

        Raises:
            TypeError: A number has no class, two, or one that lacks a member.
        """
        found = [(kind, each) for each in _concrete(cls) for kind in each.kinds]
        table = dict(found)
        missing = [kind.name for kind in kinds if kind not in table]
        if missing or len(found) != len(table):
            raise TypeError(f"{cls.__name__}: one complete class for each {kinds}; {missing=}")
        return table


def _concrete(base: type[Numbered]) -> Iterator[type[Any]]:
    for each in base.__subclasses__():
        yield from _concrete(each)
        if not inspect.isabstract(each):
            yield each


class EngineOperator(Operator, Numbered):
    """Is an op of the file; its numbers are ``OpKind``.

    Attributes:
        copies_bits: Whether it makes bits of bits without a threshold. In the file they are the
            op's bits output; in the graph they are its ``value``.
    """

    copies_bits: ClassVar[bool] = False

    @property
    @abstractmethod
    def reads(self) -> tuple[DataType, ...]:
        """Element types of the main operands that the engine can read."""

    def problems(self, kind: DataType) -> list[str]:
        """What keeps the operator out of a file if it reads ``kind``, besides ``reads``."""
        return []


class Affine(ValueOperator):
    """Source only. v * scale[c] + bias[c], in the arithmetic of some framework.

    Its fields that are arrays hold a number for each channel.
    """

    def value_type(self, operands: list[TensorType]) -> TensorType:
        check_per_channel(operands[0].shape[2], **arrays_of(self))
        return TensorType(operands[0].shape, F32)

    @abstractmethod
    def scale_bias(self) -> tuple[FloatArray, FloatArray]:
        """Scale and bias, each rounded once."""

    def parameters(self) -> list[Array]:
        return list(arrays_of(self).values())

    def is_per_channel(self, channels: int) -> bool:
        return True

    def directions(self) -> Directions | None:
        return np.sign(self.scale_bias()[0]).astype(np.int8)

    def sliced(self, channels: slice) -> Self:
        return sliced(self, channels)


def as_float(x: Array) -> FloatArray:
    """Any value as float32: accumulators and u8 by conversion, bits as -1.0 or +1.0."""
    return x.astype(np.float32, copy=False)


def arrays_of(thing: DataclassType) -> dict[str, Array]:
    """The fields that are arrays, by name."""
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


def sliced(thing: DataclassType, channels: slice) -> DataclassType:
    """A copy with all arrays cut to some channels."""
    parts = {name: array[channels] for name, array in arrays_of(thing).items()}
    return replace(thing, **parts)


def check_per_channel(channels: int, **arrays: Array) -> None:
    """Raises a ConversionError unless each array holds one number for each channel."""
    for name, array in arrays.items():
        if array.shape != (channels,):
            raise ConversionError(
                f"{name} has the wrong shape", expected=(channels,), got=array.shape
            )
