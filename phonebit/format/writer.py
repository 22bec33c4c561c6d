"""Writing of ``.pbit`` files: sections to bytes."""

from __future__ import annotations

import json
from typing import Final

import numpy as np

from phonebit.format.contents import CRC_OFFSET, INDEX, RECORD_TYPES, FileContents, file_crc
from phonebit.format.records import ALIGNMENT, HEADER, MAGIC, SECTION, VERSION, SectionKind
from phonebit.output_files import FileKind

PBIT_FILE: Final = FileKind("a .pbit file", lambda head: head.startswith(MAGIC))


def align(offset: int) -> int:
    """The next multiple of the format's alignment."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def file_bytes(contents: FileContents) -> bytes:
    """Lays the sections out, fills in the header and seals everything with the checksum.

    Args:
        contents: The sections; nothing in them is checked here.

    Returns:
        The complete file.
    """
    sections = _section_payloads(contents)
    table = np.zeros(len(sections), SECTION)
    offset = align(HEADER.itemsize + table.nbytes)
    for record, (kind, record_bytes, payload) in zip(table, sections, strict=True):
        size = len(payload)
        record["kind"], record["record_bytes"] = kind, record_bytes
        record["offset"], record["size_bytes"] = offset, size
        record["count"] = size // record_bytes
        offset = align(offset + size)
    last = table[-1]
    total = int(last["offset"] + last["size_bytes"])

    buffer = bytearray(total)
    header = np.zeros((), HEADER)
    header["magic"], header["version"], header["header_bytes"] = MAGIC, VERSION, HEADER.itemsize
    header["section_count"], header["file_bytes"] = len(sections), total
    header["section_table_offset"] = HEADER.itemsize
    buffer[: HEADER.itemsize] = header.tobytes()
    buffer[HEADER.itemsize : HEADER.itemsize + table.nbytes] = table.tobytes()
    for record, (_, _, payload) in zip(table, sections, strict=True):
        begin = int(record["offset"])
        buffer[begin : begin + len(payload)] = payload
    return seal(buffer)


def seal(buffer: bytearray) -> bytes:
    """Writes the checksum of the whole file into its header."""
    buffer[CRC_OFFSET : CRC_OFFSET + 4] = file_crc(buffer).to_bytes(4, "little")
    return bytes(buffer)


def _section_payloads(contents: FileContents) -> list[tuple[int, int, bytes]]:
    """Kind, bytes of a record and content of each section that the file gets, in order."""
    metadata = json.dumps(contents.metadata, ensure_ascii=False, sort_keys=True).encode()
    optional = [
        (SectionKind.PREPROCESSING, contents.preprocessing.tobytes()),
        (SectionKind.LABELS, contents.labels.astype(INDEX).tobytes()),
        (SectionKind.DETECTION, contents.detection.tobytes()),
        (SectionKind.EXECUTION_PLANS, contents.plans.tobytes()),
        (SectionKind.PLAN_PARTS, contents.plan_parts.tobytes()),
    ]
    known = [
        (SectionKind.STRINGS, contents.strings),
        (SectionKind.TENSORS, contents.tensors.tobytes()),
        (SectionKind.CONSTANTS, contents.constants.tobytes()),
        (SectionKind.OPERANDS, contents.operands.astype(INDEX).tobytes()),
        (SectionKind.STEPS, contents.steps.tobytes()),
        (SectionKind.OPS, contents.ops.tobytes()),
        (SectionKind.INPUTS, contents.inputs.astype(INDEX).tobytes()),
        (SectionKind.OUTPUTS, contents.outputs.astype(INDEX).tobytes()),
        (SectionKind.METADATA, metadata),
        *((kind, payload) for kind, payload in optional if payload),
        (SectionKind.DATA, bytes(contents.data)),
    ]
    unknown = [
        (section.kind, section.record_bytes, section.payload) for section in contents.unknown
    ]
    strides = {kind: dtype.itemsize for kind, dtype in RECORD_TYPES.items()}
    return [*((kind, strides.get(kind, 1), payload) for kind, payload in known), *unknown]
