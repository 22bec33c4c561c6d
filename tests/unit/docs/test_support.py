"""docs/support.md: its formats are those that importers read, its operators those of the file."""

from __future__ import annotations

import re
from pathlib import Path

from phonebit.converter.importers import sources

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
TYPES = {"kBits": "bits", "kBytes": "bytes", "kFloats": "floats", "kAnyType": "any type"}
SPLITS = {"rows_and_channels": "rows, channels", "rows": "rows", "none": "none"}


def rows(section: str) -> list[list[str]]:
    lines = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_formats_are_those_that_importers_read() -> None:
    listed = {
        suffix
        for row in rows("Formats, frameworks and backends")
        for suffix in re.findall(r"`(\.\w+)`", row[1])
    }
    families = (
        sources.KERAS_SUFFIXES,
        sources.TORCH_SUFFIXES,
        sources.ONNX_SUFFIXES,
        sources.TFLITE_SUFFIXES,
    )
    assert listed == {suffix for family in families for suffix in family}


def test_operators_are_those_of_the_file_and_their_splits_those_of_the_runtime() -> None:
    table = (ROOT / "runtime" / "ops" / "include" / "ops" / "operators.h").read_text("utf-8")
    pattern = r'OPERATOR\(\s*\d+, \w+,\s+"(\w+)",\s+\S+\s+([\w| ]+),.*Cuts::(\w+),'
    known = [
        [f"`{name}`", ", ".join(TYPES[of] for of in types.split(" | ")), "yes", "yes", SPLITS[cuts]]
        for name, types, cuts in re.findall(pattern, table)
    ]
    assert rows("Operators and backends") == known and len(known) > 10
