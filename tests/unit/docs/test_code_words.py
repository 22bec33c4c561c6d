"""Comments, names and file names use the glossary's terms; comments have at most 120 columns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.source_text import ROOT, comments, files, names
from support.words import (
    IN_CODE,
    OUTSIDE_THE_CONVERTER,
    complaints,
    complaints_of_name,
    prose_of,
)

WIDTH = 120
FOLDERS = (
    ".ci", "android", "benchmarks", "bnn_kernels", "cmake", "converter", "cpu_backend", "examples",
    "models", "packaging", "phonebit", "training",
    *(f"runtime/{name}" for name in (
        "analysis", "backend", "builder", "c_api", "coexec", "cpu", "energy", "engine", "format",
        "gpu", "images", "include", "loader", "measure", "memory", "opencl", "ops", "python",
        "system", "threads", "tools", "types",
    )),
    *(f"tests/{name}" for name in (
        "android", "bindings", "c_api", "coexec", "converter", "cpp", "cpu", "fuzz", "models",
        "opencl", "packaging", "tools", "unit",
    )),
)  # fmt: skip
LISTS = {ROOT / "tests/unit/docs/test_code_words.py"}
"""They name what is not to be written."""


def findings(path: Path) -> list[str]:
    """What a file says that it should not: its place, the word, and a better one."""
    where = path.relative_to(ROOT).as_posix()
    found = [f"{where}: {each}" for each in complaints_of_name(where)]
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return found
    lines = text.splitlines()
    meanings = IN_CODE if "converter" in where else IN_CODE | OUTSIDE_THE_CONVERTER
    for number, comment in comments(path, text):
        told = complaints(prose_of(comment), meanings)
        # A line of a kernel's header is one entry, which the runtime parses.
        if len(lines[number - 1]) > WIDTH and not lines[number - 1].startswith("// @"):
            told.append(f"{len(lines[number - 1])} columns: write at most {WIDTH}")
        found += [f"{where}:{number}: {each}" for each in told]
    for number, name in names(path, text):
        found += [f"{where}:{number}: {name}: {each}" for each in complaints_of_name(name)]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_code(folder: str) -> None:
    of_folder = [path for path in files() if str(path).startswith(f"{ROOT / folder}{os.sep}")]
    of_folder = [path for path in of_folder if path not in LISTS]
    assert [each for path in of_folder for each in findings(path)] == []


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("py", "# beside it\n", ["1: 'beside'"]),
        ("py", 'def _f():\n    """One.\n\n    A wish.\n    """\n', ["4: 'wish'"]),
        ("py", 'x = "beside"  # near\n', []),
        ("py", 'f"{picture} {x[0]} beside"\n', ["1: picture"]),
        ("cpp", '/// two pixels a tile\nint kMostRuns = f("behind // it");\n', ["per", "max"]),
        ("cpp", "/* one\n * behind */\nphonebit_picture p;\n", ["2: 'behind'"]),
        ("cmake", 'set(a "#b behind")\n# behind\n', ["2: 'behind'"]),
        ("cl", "// " + "x" * 118 + "\n", ["121 columns"]),
    ],
)
def test_what_is_found(
    kind: str, text: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (file := tmp_path / f"file.{kind}").write_text(text)
    found = findings(file)
    assert len(found) == len(told), found
    assert all(expected in each for expected, each in zip(told, found, strict=True)), found


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (file := tmp_path / "my_canary.bin").write_bytes(b"\xff")
    assert findings(file) == ["my_canary.bin: 'canary': write noise probe"]
