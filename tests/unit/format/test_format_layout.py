"""The Python and the C++ half of the file contract declare the same bytes and the same numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from phonebit.format import records
from phonebit.format.contents import CRC_OFFSET

RUNTIME = Path(__file__).parents[3] / "runtime"
HEADER = RUNTIME / "format/include/format/pbit_records.h"
TYPES = RUNTIME / "types/include/types"  # enumerations that are also the engine's own
ENUM_HEADERS = (HEADER, TYPES / "preprocessing.h", TYPES / "detection.h")
OPS = RUNTIME / "ops/include/ops"
TABLES = {"OpKind": OPS / "operators.h", "StepKind": OPS / "steps.h"}
"""Enumerations whose numbers are rows of tables."""
STRUCTS = {
    "Header": records.HEADER,
    "SectionRecord": records.SECTION,
    "TensorRecord": records.TENSOR,
    "ConstantRecord": records.CONSTANT,
    "StepRecord": records.STEP,
    "OpRecord": records.OP,
    "PreprocessingRecord": records.PREPROCESSING,
    "DetectionRecord": records.DETECTION,
    "PlanRecord": records.PLAN,
    "PlanPartRecord": records.PLAN_PART,
}
ENUMS: tuple[type[IntEnum], ...] = (
    records.SectionKind,
    records.DataType,
    records.OpKind,
    records.StepKind,
    records.ThresholdKind,
    records.ColorOrder,
    records.Resize,
    records.Interpolation,
    records.HeadKind,
)
CONSTANTS = {
    "kVersion": records.VERSION,
    "kAlignment": records.ALIGNMENT,
    "kNone": records.NONE,
    "kMaxAnchors": records.MAX_ANCHORS,
}
CPP_TYPES = {
    "char": "S",
    "uint32_t": "<u4",
    "int32_t": "<i4",
    "uint64_t": "<u8",
    "float": "<f4",
    "double": "<f8",
}


def declared_fields(struct: str) -> list[tuple[str, str, int]]:
    """(name, element type, element count) of a struct's fields, in order."""
    body = re.search(rf"struct {struct} {{(.*?)}};", HEADER.read_text(), re.DOTALL)
    assert body is not None, struct
    fields = re.findall(r"(\w+) (\w+)(?:\[(\d+)\])?;", body[1])
    return [(name, CPP_TYPES[kind], int(count or 1)) for kind, name, count in fields]


def declared_enum(name: str) -> dict[str, int]:
    if name in TABLES:
        row = r"(?:OPERATOR|STEP|FUNCTION) *\( *(\d+), *k(\w+),"
        rows = re.findall(row, TABLES[name].read_text())
        return {key: int(value) for value, key in rows}
    declaration = re.compile(rf"enum class {name} : uint32_t {{(.*?)}};", re.DOTALL)
    bodies = [
        body[1] for header in ENUM_HEADERS for body in declaration.finditer(header.read_text())
    ]
    assert len(bodies) == 1, f"{name}: declared {len(bodies)} times"
    return {key: int(value, 0) for key, value in re.findall(r"\bk?(\w+) = (\w+)", bodies[0])}


@pytest.mark.parametrize("struct", STRUCTS)
def test_structs_have_the_same_fields_in_the_same_order(struct: str) -> None:
    fields = STRUCTS[struct].fields
    assert fields is not None
    described = []
    for name in STRUCTS[struct].names or ():
        dtype = fields[name][0]
        count = int(np.prod(dtype.shape, dtype=int))
        if dtype.base.kind == "S":
            described.append((name, "S", dtype.itemsize))
        else:
            described.append((name, dtype.base.str, count))
    assert described == declared_fields(struct)


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.__name__)
def test_enumerations_have_the_same_numbers(enum: type[IntEnum]) -> None:
    python = {member.name.replace("_", "").lower(): int(member) for member in enum}
    declared = declared_enum(enum.__name__)
    cpp = {name.replace("_", "").lower(): value for name, value in declared.items()}
    assert python == cpp


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_have_the_same_values(name: str) -> None:
    found = re.search(rf"constexpr u?int32_t {name} = (\S+);", HEADER.read_text())
    assert found is not None
    assert int(found[1], 0) == CONSTANTS[name]


def test_the_checksum_field_is_where_the_header_says() -> None:
    assert records.HEADER.fields is not None
    assert records.HEADER.fields["crc32"][1] == CRC_OFFSET


def test_the_compiler_lays_every_field_out_where_numpy_does(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++ or clang++) to lay the structs out")
    lines = [
        "#include <cstdio>",
        f'#include "{HEADER}"',
        "using namespace phonebit::engine::format;",
    ]
    lines.append("int main() {")
    for struct in STRUCTS:
        lines.append(f'  std::printf("{struct} %zu\\n", sizeof({struct}));')
        for name, _, _ in declared_fields(struct):
            offset = f"offsetof({struct}, {name})"
            lines.append(f'  std::printf("{struct}.{name} %zu\\n", {offset});')
    lines.append("}")
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    source.write_text("\n".join(lines))
    subprocess.run([compiler, "-std=c++17", str(source), "-o", str(program)], check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    compiled = {key: int(value) for key, value in (line.split() for line in output.splitlines())}
    expected: dict[str, int] = {}
    for struct, dtype in STRUCTS.items():
        expected[struct] = dtype.itemsize
        for name, field in (dtype.fields or {}).items():
            expected[f"{struct}.{name}"] = field[1]
    assert compiled == expected
