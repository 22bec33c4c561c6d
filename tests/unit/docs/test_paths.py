"""Files that comments, docstrings and documents name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = (
    "android", "benchmarks", "bnn_kernels", "cmake", "converter", "cpu_backend", "docs", "examples",
    "models", "packaging", "phonebit", "runtime", "tests", "training", "web",
)  # fmt: skip
C_FAMILY = {".c", ".cl", ".clh", ".cpp", ".h", ".inl", ".java", ".kt"}
NAMED = re.compile(
    r"(?<![\w./$}{*<>-])((?:[\w.-]+/)*[\w-]+\.(?:c|cl|clh|cmake|cpp|h|inl|kt|py|pyi|table))\b(?!\.?\w|/)"
)
ELSEWHERE = {
    "0.cl", "1.cl", "x.clh", "my_layers.py",  # examples of names
    "activations.h",  # made by the build
    "jni.h", "performance_hint.h",  # the NDK's
    "pyconfig.h",  # Python's
}  # fmt: skip
"""Names of files that are not in the tree."""
REMARK = {
    **dict.fromkeys(C_FAMILY, re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)),
    **dict.fromkeys((".py", ".pyi"), re.compile(r'#[^\n]*|""".*?"""', re.DOTALL)),
    **dict.fromkeys((".cmake", ".table", ".txt"), re.compile(r"#[^\n]*")),
    ".md": re.compile(r"`[^`\n]+`"),
}


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in REMARK and "build" not in path.relative_to(ROOT).parts[:-1]:
                yield path
    yield from sorted(ROOT.glob("*.md"))


def remarks(suffix: str, text: str) -> Iterator[str]:
    """Comments and docstrings; of Markdown what is written as code within prose."""
    yield from REMARK[suffix].findall(text)


def known(paths: list[Path]) -> set[str]:
    """Each way to name a file: from any folder above it on."""
    names = (path.relative_to(ROOT).parts for path in paths)
    return {"/".join(parts[start:]) for parts in names for start in range(len(parts))}


def missing(suffix: str, text: str, known_names: set[str]) -> list[str]:
    """Names of files that a text speaks of, and that neither the tree nor ``ELSEWHERE`` has."""
    named = [name for remark in remarks(suffix, text) for name in NAMED.findall(remark)]
    in_tree = [re.sub(r"^(\.\./)+|^phonebit/(?=converter/)", "", name) for name in named]
    return [
        name
        for name in in_tree
        if name not in known_names and name.rpartition("/")[2] not in ELSEWHERE
    ]


def test_named_files_exist() -> None:
    paths = [path for path in files() if path != Path(__file__)]
    names = known(paths)
    assert len(paths) > 1000
    found = {
        path.relative_to(ROOT).as_posix(): lost
        for path in paths
        if (lost := missing(path.suffix, path.read_text("utf-8", errors="replace"), names))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("suffix", "text", "lost"),
    [
        (".h", "// See runtime/cpu/nowhere.cpp.\nint x;", ["runtime/cpu/nowhere.cpp"]),
        (".inl", "/* as in\n   nowhere.inl */", ["nowhere.inl"]),
        (".py", '"""As ``planner/nowhere.py`` does."""\n', ["planner/nowhere.py"]),
        (".md", "`nowhere.cl` computes, nowhere.cl does not count", ["nowhere.cl"]),
        (".txt", "# nowhere.cmake\n", ["nowhere.cmake"]),
        (".h", '#include "nowhere.h"  // cpu/executor.cpp', []),
        (".py", "# phonebit/converter/ir.py and ../docs/test_paths.py", []),
    ],
)
def test_what_is_lost_is_found(suffix: str, text: str, lost: list[str]) -> None:
    names = {"cpu/executor.cpp", "converter/ir.py", "docs/test_paths.py"}
    assert missing(suffix, text, names) == lost
