"""Reading of ``.pbit`` files: an untrusted file becomes checked sections, or one clear error.

Every offset, size, count, index, enumeration and name is checked before it is used, as
docs/format.md demands. What the records *mean* (shapes that fit, constants of the right length) is
checked by ``phonebit/converter/reader.py`` and, independently, by the C++ loader.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from phonebit.errors import ModelFormatError
from phonebit.format.contents import (
    CONSTANT_TYPES,
    RECORD_TYPES,
    REQUIRED_SECTIONS,
    FileContents,
    UnknownSection,
    file_crc,
)
from phonebit.format.optional_sections import (
    detection_problem,
    labels_problem,
    preprocessing_problem,
)
from phonebit.format.plan_sections import plans_problem
from phonebit.format.records import (
    ALIGNMENT,
    HEADER,
    MAGIC,
    NONE,
    OPTIONAL_SECTION,
    SECTION,
    VERSION,
    DataType,
    OpKind,
    SectionKind,
    StepKind,
    ThresholdKind,
)

MAX_SECTIONS: Final = 1024
MAX_EXTENT: Final = 1 << 20
MAX_ELEMENTS: Final = 1 << 31
RE_EXPORT: Final = "the file is damaged: convert the network again or copy the file again"


def read_contents(path: str | Path) -> FileContents:
    """Reads and checks a file.

    Args:
        path: A ``.pbit`` file.

    Raises:
        ModelFormatError: It cannot be read, or is not a sound ``.pbit`` file of this version.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelFormatError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check the path"
        ) from error
    return parse_contents(content, str(path))


def parse_contents(content: bytes, where: str = "model") -> FileContents:
    """Checks the bytes of a file and takes them apart.

    Args:
        content: The whole file.
        where: What to call it in errors.

    Raises:
        ModelFormatError: It is not a sound ``.pbit`` file of this version.
    """
    return _Parser(content, where).contents()


class _Parser:
    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        self.where = where
        self.strings = b""
        self.unknown: list[UnknownSection] = []

    def contents(self) -> FileContents:
        self._check_header()
        payloads = self._sections()
        arrays = {
            kind: np.frombuffer(payloads.get(kind, b""), dtype)
            for kind, dtype in RECORD_TYPES.items()
        }
        self.strings = bytes(payloads[SectionKind.STRINGS])
        if not self.strings.endswith(b"\0"):
            self._fail("the STRINGS section does not end with a zero byte")
        contents = FileContents(
            strings=self.strings,
            tensors=arrays[SectionKind.TENSORS],
            constants=arrays[SectionKind.CONSTANTS],
            operands=arrays[SectionKind.OPERANDS],
            steps=arrays[SectionKind.STEPS],
            ops=arrays[SectionKind.OPS],
            inputs=arrays[SectionKind.INPUTS],
            outputs=arrays[SectionKind.OUTPUTS],
            data=payloads[SectionKind.DATA],
            metadata=self._metadata(payloads.get(SectionKind.METADATA)),
            preprocessing=arrays[SectionKind.PREPROCESSING],
            labels=arrays[SectionKind.LABELS],
            detection=arrays[SectionKind.DETECTION],
            plans=arrays[SectionKind.EXECUTION_PLANS],
            plan_parts=arrays[SectionKind.PLAN_PARTS],
            unknown=tuple(self.unknown),
        )
        self._check_tensors(contents)
        self._check_constants(contents)
        self._check_steps(contents)
        for index, op in enumerate(contents.ops):
            self._check_op(contents, op, f"op {index}")
        self._check_optional_sections(contents)
        return contents

    def _fail(
        self,
        what: str,
        *,
        expected: object = None,
        got: object = None,
        hint: str = RE_EXPORT,
    ) -> NoReturn:
        raise ModelFormatError(what, where=self.where, expected=expected, got=got, hint=hint)

    def _check_header(self) -> None:
        content = self.content
        if content[: len(MAGIC)] != MAGIC:
            got = content[: len(MAGIC)] or "an empty file"
            self._fail("not a .pbit file", expected=MAGIC, got=got, hint="run phonebit convert")
        if len(content) < HEADER.itemsize:
            self._fail("file is truncated", expected=f"{HEADER.itemsize} bytes", got=len(content))
        header = np.frombuffer(content, HEADER, count=1)[0]
        if header["version"] != VERSION:
            hint = "update phonebit, or convert the network with this version"
            self._fail("file version", expected=VERSION, got=int(header["version"]), hint=hint)
        if header["header_bytes"] != HEADER.itemsize:
            self._fail("header size", expected=HEADER.itemsize, got=int(header["header_bytes"]))
        if header["file_bytes"] != len(content):
            self._fail("file size", expected=int(header["file_bytes"]), got=len(content))
        crc = file_crc(content)
        if crc != header["crc32"]:
            self._fail("checksum", expected=f"{int(header['crc32']):#010x}", got=f"{crc:#010x}")
        self.section_count = int(header["section_count"])
        self.table_offset = int(header["section_table_offset"])

    def _sections(self) -> dict[int, memoryview]:
        size = len(self.content)
        table_bytes = self.section_count * SECTION.itemsize
        if self.section_count > MAX_SECTIONS or self.table_offset + table_bytes > size:
            self._fail("section table lies outside the file", got=self.section_count)
        if self.table_offset < HEADER.itemsize or self.table_offset % 8:
            self._fail("section table offset", expected=HEADER.itemsize, got=self.table_offset)
        table = np.frombuffer(self.content, SECTION, self.section_count, self.table_offset)
        spans = [(0, HEADER.itemsize), (self.table_offset, self.table_offset + table_bytes)]
        payloads: dict[int, memoryview] = {}
        for record in table:
            kind = int(record["kind"])
            if kind < OPTIONAL_SECTION and kind not in REQUIRED_SECTIONS:
                self._fail("unknown section kind", got=kind, hint="update phonebit")
            begin, length = int(record["offset"]), int(record["size_bytes"])
            if begin % ALIGNMENT or begin > size or length > size - begin:
                self._fail(f"section {kind} is misaligned or outside the file", got=(begin, length))
            if kind in payloads:
                self._fail(f"section {kind} appears twice")
            self._check_record_size(record, kind, length)
            payload = memoryview(self.content)[begin : begin + length]
            if length:
                spans.append((begin, begin + length))
                if kind not in SectionKind._value2member_map_:
                    stride = int(record["record_bytes"])
                    self.unknown.append(UnknownSection(kind, stride, bytes(payload)))
            payloads[kind] = payload
        spans.sort()
        for (_, end), (begin, _) in pairwise(spans):
            if begin < end:
                self._fail("sections overlap", got=(begin, end))
        for required in REQUIRED_SECTIONS:
            if required not in payloads:
                self._fail(f"section {required.name} is missing")
        return payloads

    def _check_record_size(self, record: np.void, kind: int, length: int) -> None:
        known = kind in SectionKind._value2member_map_
        stride = RECORD_TYPES[SectionKind(kind)].itemsize if kind in RECORD_TYPES else 1
        record_bytes, count = int(record["record_bytes"]), int(record["count"])
        if known and record_bytes != stride:
            self._fail(f"record size of section {kind}", expected=stride, got=record_bytes)
        if record_bytes * count != length:
            self._fail(f"size of section {kind}", expected=record_bytes * count, got=length)

    def _metadata(self, payload: memoryview | None) -> dict[str, Any]:
        if not payload:
            return {}
        try:
            metadata = json.loads(bytes(payload).decode())
        except (ValueError, RecursionError) as error:
            self._fail(f"metadata is not JSON: {error}")
        if not isinstance(metadata, dict):
            self._fail("metadata", expected="a JSON object", got=type(metadata).__name__)
        return metadata

    def _name(self, offset: int, what: str) -> str:
        if offset >= len(self.strings):
            self._fail(f"name of {what} lies outside STRINGS", got=offset)
        end = self.strings.index(b"\0", offset)
        try:
            name = self.strings[offset:end].decode()
        except UnicodeDecodeError as error:
            self._fail(f"name of {what} is not UTF-8: {error}")
        if not name:
            self._fail(f"{what} has an empty name")
        return name

    def _check_tensors(self, contents: FileContents) -> None:
        seen: set[str] = set()
        for index, record in enumerate(contents.tensors):
            name = self._name(int(record["name_offset"]), f"tensor {index}")
            if name in seen:
                self._fail(f"two tensors are called {name!r}")
            seen.add(name)
            if record["dtype"] not in (DataType.BIT, DataType.U8, DataType.F32):
                self._fail(f"tensor {name!r}: element type", got=int(record["dtype"]))
            shape = [int(record[side]) for side in ("height", "width", "channels")]
            if not all(1 <= side <= MAX_EXTENT for side in shape):
                self._fail(f"tensor {name!r}: shape", expected="1..2^20 a side", got=shape)
            if shape[0] * shape[1] * shape[2] > MAX_ELEMENTS:
                self._fail(f"tensor {name!r}: too many elements", expected="<= 2^31", got=shape)
        count = len(contents.tensors)
        for what, indices in (
            ("operand", contents.operands),
            ("input", contents.inputs),
            ("output", contents.outputs),
        ):
            if np.any(indices >= count):
                self._fail(f"{what} index", expected=f"< {count}", got=int(indices.max()))
            if what != "operand" and (
                not indices.size or len(set(indices.tolist())) < indices.size
            ):
                self._fail(f"{what}s must be one or more different tensors")

    def _check_constants(self, contents: FileContents) -> None:
        for index, record in enumerate(contents.constants):
            where = f"constant {index}"
            stored = CONSTANT_TYPES.get(int(record["dtype"]))
            if stored is None:
                hint = "update phonebit"
                self._fail(f"{where}: element type", got=int(record["dtype"]), hint=hint)
            offset, size = int(record["offset"]), int(record["size_bytes"])
            expected = stored.itemsize * int(record["count"])
            if size != expected:
                self._fail(f"{where}: size", expected=expected, got=size)
            if offset % ALIGNMENT or offset + size > len(contents.data):
                self._fail(f"{where} is misaligned or outside DATA", got=(offset, size))

    def _check_steps(self, contents: FileContents) -> None:
        limits = {
            "tensor": len(contents.tensors),
            "constant_a": len(contents.constants),
            "constant_b": len(contents.constants),
        }
        for index, step in enumerate(contents.steps):
            if int(step["kind"]) not in StepKind._value2member_map_:
                self._fail(
                    f"step {index}: unknown kind", got=int(step["kind"]), hint="update phonebit"
                )
            self._check_references(step, limits, f"step {index}")

    def _check_references(self, record: np.void, limits: dict[str, int], where: str) -> None:
        for field, limit in limits.items():
            reference = int(record[field])
            if reference != NONE and not 0 <= reference < limit:
                self._fail(f"{where}: {field}", expected=f"-1 or < {limit}", got=reference)

    def _check_op(self, contents: FileContents, op: np.void, where: str) -> None:
        if int(op["kind"]) not in OpKind._value2member_map_:
            self._fail(f"{where}: unknown kind", got=int(op["kind"]), hint="update phonebit")
        name = self._name(int(op["name_offset"]), where)
        where = f"{where} ({name})"
        if int(op["threshold_kind"]) not in ThresholdKind._value2member_map_:
            self._fail(f"{where}: unknown threshold kind", got=int(op["threshold_kind"]))
        for table, begin, count in (
            (contents.operands, "operand_begin", "operand_count"),
            (contents.steps, "step_begin", "step_count"),
        ):
            if int(op[begin]) + int(op[count]) > len(table):
                self._fail(f"{where}: {begin} + {count}", expected=f"<= {len(table)}")
        if op["operand_count"] < 1:
            self._fail(f"{where}: reads nothing", expected="an operand")
        tensors, constants = len(contents.tensors), len(contents.constants)
        limits = {"value_output": tensors, "bits_output": tensors}
        limits |= dict.fromkeys(("weights", "threshold", "flip_mask"), constants)
        self._check_references(op, limits, where)
        if op["value_output"] == NONE and op["bits_output"] == NONE:
            self._fail(f"{where}: writes nothing", expected="a value or bits")

    def _check_optional_sections(self, contents: FileContents) -> None:
        problems = (preprocessing_problem, detection_problem, labels_problem, plans_problem)
        for problem_of in problems:
            if problem := problem_of(contents):
                self._fail(problem)
        for index, offset in enumerate(contents.labels):
            self._name(int(offset), f"label {index}")
        devices: set[str] = set()
        for index, plan in enumerate(contents.plans):
            self._name(int(plan["method_offset"]), f"the method of plan {index}")
            device = self._name(int(plan["device_offset"]), f"the device of plan {index}")
            if device in devices:
                self._fail(f"two plans are for device {device!r}")
            devices.add(device)


def constant_array(contents: FileContents, index: int) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of one constant, u32 words or numbers, without copying them."""
    record = contents.constants[index]
    kind = CONSTANT_TYPES[DataType(int(record["dtype"]))]
    return np.frombuffer(contents.data, kind, int(record["count"]), int(record["offset"]))
