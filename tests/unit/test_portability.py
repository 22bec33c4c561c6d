"""Sources ask for no header that Windows lacks; the platforms page names wheels that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
POSIX_ONLY = re.compile(
    r"#include <(dlfcn|pthread|sched|asm/\w+|sys/(auxv|ioctl|mman|resource|syscall|wait))\.h>"
)
CONDITION = re.compile(r"# *(if|ifdef|ifndef|elif|else|endif)\b(.*)")


def unguarded(text: str) -> list[str]:
    """Headers of POSIX that every system would include."""
    found, conditions = [], [""]
    for line in text.splitlines():
        if directive := CONDITION.match(line):
            word, condition = directive.groups()
            if not word.startswith("if"):
                conditions.pop()
            if word != "endif":
                conditions.append(condition)
        guarded = any(re.search("__(linux|unix|APPLE)__", condition) for condition in conditions)
        if POSIX_ONLY.match(line) and not guarded:
            found.append(line)
    return found


def test_only_one_layer_includes_headers_that_windows_lacks() -> None:
    folders = (ROOT / "runtime", ROOT / "cpu_backend")
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".cpp", ".h"}
    ]
    found = {path.relative_to(ROOT).as_posix(): unguarded(path.read_text()) for path in files}
    assert [path for path, headers in found.items() if headers] == ["runtime/system/posix.cpp"]


def test_the_platforms_page_names_the_wheels() -> None:
    module = ast.parse((ROOT / "packaging" / "wheels.py").read_text())
    tables = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGETS"
    ]
    page = (ROOT / "docs" / "platforms.md").read_text()
    named = set(re.findall(r"wheels\.py (\w+)", page))
    assert named and named <= set(tables[0])
