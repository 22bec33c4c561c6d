"""Reading of ``.pbit`` files: the arrays of a file that the C++ loader has accepted.

The loader checks everything that docs/format.md demands, so a file that comes this far is sound:
every offset, index, enumeration and name is in its range, and every shape and constant fits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from phonebit.compiled import load_runtime
from phonebit.errors import ModelFormatError
from phonebit.format.contents import CONSTANT_TYPES, RECORD_TYPES, FileContents, UnknownSection
from phonebit.format.records import HEADER, SECTION, DataType, SectionKind
from phonebit.missing_files import missing_file

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
    except FileNotFoundError as error:
        raise missing_file(path, ModelFormatError) from error
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
    try:
        load_runtime().check_file(content)
    except ModelFormatError as error:
        raise ModelFormatError(error.what, where=where) from None
    header = np.frombuffer(content, HEADER, 1)[0]
    count, offset = int(header["section_count"]), int(header["section_table_offset"])
    payloads: dict[int, memoryview] = {}
    unknown: list[UnknownSection] = []
    for record in np.frombuffer(content, SECTION, count, offset):
        kind, begin, size = (int(record[name]) for name in ("kind", "offset", "size_bytes"))
        payload = memoryview(content)[begin : begin + size]
        if kind in SectionKind._value2member_map_:
            payloads[kind] = payload
        elif size:
            unknown.append(UnknownSection(kind, int(record["record_bytes"]), bytes(payload)))
    arrays = {
        kind: np.frombuffer(payloads.get(kind, b""), dtype) for kind, dtype in RECORD_TYPES.items()
    }
    return FileContents(
        strings=bytes(payloads[SectionKind.STRINGS]),
        tensors=arrays[SectionKind.TENSORS],
        constants=arrays[SectionKind.CONSTANTS],
        operands=arrays[SectionKind.OPERANDS],
        steps=arrays[SectionKind.STEPS],
        ops=arrays[SectionKind.OPS],
        inputs=arrays[SectionKind.INPUTS],
        outputs=arrays[SectionKind.OUTPUTS],
        data=payloads[SectionKind.DATA],
        metadata=_metadata(payloads.get(SectionKind.METADATA), where),
        preprocessing=arrays[SectionKind.PREPROCESSING],
        labels=arrays[SectionKind.LABELS],
        detection=arrays[SectionKind.DETECTION],
        plans=arrays[SectionKind.EXECUTION_PLANS],
        plan_parts=arrays[SectionKind.PLAN_PARTS],
        unknown=tuple(unknown),
    )


def _metadata(payload: memoryview | None, where: str) -> dict[str, Any]:
    """The runtime ignores metadata that are no JSON object; who writes the file again would not."""
    try:
        metadata = json.loads(bytes(payload)) if payload else {}
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(
            f"metadata is not JSON: {error}", where=where, hint=RE_EXPORT
        ) from error
    if not isinstance(metadata, dict):
        got = type(metadata).__name__
        raise ModelFormatError(
            "metadata", where=where, expected="a JSON object", got=got, hint=RE_EXPORT
        )
    return metadata


def constant_array(contents: FileContents, index: int) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of one constant, u32 words or numbers, without copying them."""
    record = contents.constants[index]
    kind = CONSTANT_TYPES[DataType(int(record["dtype"]))]
    return np.frombuffer(contents.data, kind, int(record["count"]), int(record["offset"]))
