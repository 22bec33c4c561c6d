"""The list of symbols that the shared library shows, against the headers and the test in C.

The native test ``exported_symbols`` compares the list with the library.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADERS = ROOT / "runtime" / "include" / "phonebit"
GOLDEN = Path(__file__).with_name("exported_symbols.txt").read_text().splitlines()


def declared(header: Path) -> list[str]:
    """Functions that a header declares."""
    return re.findall(r"^PHONEBIT_API [^;(]*?\b(phonebit_\w+)\(", header.read_text(), re.MULTILINE)


def test_every_declared_function_is_in_the_list_and_nothing_else() -> None:
    functions = [name for header in HEADERS.glob("*_c.h") for name in declared(header)]
    assert len(functions) == len(set(functions))
    assert sorted(functions) == GOLDEN


def test_every_declaration_carries_the_export_macro() -> None:
    for header in HEADERS.glob("*_c.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        prototypes = re.findall(r"\b(phonebit_\w+)\([^)]*\)\s*;", text)
        assert sorted(set(prototypes)) == sorted(declared(header)), header.name


def test_the_tests_in_c_call_every_function() -> None:
    calls = "".join(path.read_text() for path in Path(__file__).parent.glob("test_c_*.c"))
    unused = [name for name in declared(HEADERS / "phonebit_c.h") if f"{name}(" not in calls]
    assert unused == []
