"""A ``.pbit`` file taken apart: the arrays of its sections, before any meaning is given to them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.format.records import (
    CONSTANT,
    DETECTION,
    NONE,
    OP,
    PLAN,
    PLAN_PART,
    PREPROCESSING,
    STEP,
    TENSOR,
    DataType,
    OpKind,
    SectionKind,
    StepKind,
)

Records = NDArray[np.void]
Indices = NDArray[np.uint32]

INDEX: Final = np.dtype("<u4")
RECORD_TYPES: Final[dict[SectionKind, np.dtype[Any]]] = {
    SectionKind.TENSORS: TENSOR,
    SectionKind.CONSTANTS: CONSTANT,
    SectionKind.OPERANDS: INDEX,
    SectionKind.STEPS: STEP,
    SectionKind.OPS: OP,
    SectionKind.INPUTS: INDEX,
    SectionKind.OUTPUTS: INDEX,
    SectionKind.PREPROCESSING: PREPROCESSING,
    SectionKind.LABELS: INDEX,
    SectionKind.DETECTION: DETECTION,
    SectionKind.EXECUTION_PLANS: PLAN,
    SectionKind.PLAN_PARTS: PLAN_PART,
}
"""Sections that are arrays of records; STRINGS, DATA and METADATA are plain bytes."""

CONSTANT_TYPES: Final[dict[int, np.dtype[Any]]] = {
    DataType.BIT: INDEX,
    DataType.I32: np.dtype("<i4"),
    DataType.F32: np.dtype("<f4"),
    DataType.F16: np.dtype("<f2"),
    DataType.I8: np.dtype("i1"),
}
"""How the elements of a constant lie in DATA; those of BIT are words of 32."""

CRC_OFFSET: Final = 32
"""Where the header's checksum field is."""


def file_crc(content: bytes | bytearray) -> int:
    """CRC-32 of a whole file, with the checksum field taken as zero."""
    view = memoryview(content)
    crc = zlib.crc32(bytes(4), zlib.crc32(view[:CRC_OFFSET]))
    return zlib.crc32(view[CRC_OFFSET + 4 :], crc)


@dataclass(frozen=True)
class UnknownSection:
    """An optional section of a later version."""

    kind: int
    record_bytes: int
    payload: bytes


@dataclass
class FileContents:
    """The sections of one file, as the format declares them.

    Args:
        strings: Zero-terminated UTF-8 names; records refer to them by byte offset.
        tensors: TENSOR records.
        constants: CONSTANT records; their offsets point into ``data``.
        operands: Tensor indices that ops refer to.
        steps: STEP records that ops refer to.
        ops: OP records in execution order.
        inputs: Tensor indices.
        outputs: Tensor indices.
        data: The bytes of all constants.
        metadata: Name, producer, origin; never needed to compute anything.
        preprocessing: PREPROCESSING records, at most one per input; never needed to compute either.
        labels: Byte offsets of class names in ``strings``, one per class of the first output, or
            none.
        detection: DETECTION records, at most one per output.
        plans: EXECUTION_PLANS records, at most one per device; ``phonebit.planner`` reads and
            writes them.
        plan_parts: PLAN_PARTS records that plans refer to.
        unknown: Optional sections of kinds that this version does not know, kept as they are.
    """

    strings: bytes
    tensors: Records
    constants: Records
    operands: Indices
    steps: Records
    ops: Records
    inputs: Indices
    outputs: Indices
    data: bytes | memoryview
    metadata: dict[str, Any] = field(default_factory=dict)
    preprocessing: Records = field(default_factory=lambda: np.zeros(0, PREPROCESSING))
    labels: Indices = field(default_factory=lambda: np.zeros(0, INDEX))
    detection: Records = field(default_factory=lambda: np.zeros(0, DETECTION))
    plans: Records = field(default_factory=lambda: np.zeros(0, PLAN))
    plan_parts: Records = field(default_factory=lambda: np.zeros(0, PLAN_PART))
    unknown: tuple[UnknownSection, ...] = ()

    def output_shape(self, op: np.void) -> tuple[int, int, int]:
        """Height, width and channels of what an op writes; its value and its bits have the same."""
        output = int(op["value_output"])
        tensor = self.tensors[output if output != NONE else int(op["bits_output"])]
        return int(tensor["height"]), int(tensor["width"]), int(tensor["channels"])

    def operands_of(self, op: np.void | NDArray[np.void]) -> tuple[int, ...]:
        """The tensors that an op reads through its window."""
        begin, count = int(op["operand_begin"]), int(op["operand_count"])
        return tuple(self.operands[begin : begin + count].tolist())

    def step_tensors_of(self, op: np.void | NDArray[np.void]) -> tuple[int, ...]:
        """The tensors that an op's steps add or multiply, pixel by pixel."""
        begin, count = int(op["step_begin"]), int(op["step_count"])
        reading = (StepKind.ADD, StepKind.MULTIPLY)
        steps = self.steps[begin : begin + count]
        return tuple(int(step["tensor"]) for step in steps if int(step["kind"]) in reading)

    @staticmethod
    def outputs_of(op: np.void | NDArray[np.void]) -> tuple[int, ...]:
        """The tensors that an op writes: its value, then its bits."""
        value, bits = int(op["value_output"]), int(op["bits_output"])
        planes = int(op["planes"]) if op["kind"] == OpKind.BIT_PLANES else 1
        values = () if value == NONE else (value,)
        return values if bits == NONE else (*values, *range(bits, bits + planes))

    def name(self, offset: int) -> str:
        """The name that starts at byte ``offset`` of the strings."""
        end = self.strings.index(b"\0", offset)
        return self.strings[offset:end].decode()
