"""How the native libraries are built: what an attacker could use of them is closed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess

import pytest

from phonebit import _runtime

READELF = shutil.which("readelf")
LIBRARY = os.environ.get("PHONEBIT_LIBRARY")
"""The C library of a native build."""
pytestmark = pytest.mark.skipif(READELF is None, reason="readelf is not installed")


def readelf(path: str, *options: str) -> str:
    command = [str(READELF), "--wide", *options, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("path", [_runtime.__file__, LIBRARY])
def test_tables_are_read_only_and_stacks_hold_no_code(path: str | None) -> None:
    if path is None:
        pytest.skip("PHONEBIT_LIBRARY names no library")
    assert "NOW" in readelf(path, "--dynamic")
    headers = readelf(path, "--program-headers").splitlines()
    assert any(line.split()[:1] == ["GNU_RELRO"] for line in headers)
    (stack,) = (line for line in headers if line.split()[:1] == ["GNU_STACK"])
    assert "RWE" not in stack


@pytest.mark.parametrize("path", [_runtime.__file__, LIBRARY])
def test_overwritten_stacks_and_overlong_copies_end_the_process(path: str | None) -> None:
    if path is None:
        pytest.skip("PHONEBIT_LIBRARY names no library")
    imported = {line.split()[7].split("@")[0] for line in undefined_symbols(path)}
    assert "__stack_chk_fail" in imported or has_own_stack_check(path)
    assert any(name.endswith("_chk") for name in imported), sorted(imported)


def has_own_stack_check(path: str) -> bool:
    """Zig links a __stack_chk_fail of its own; then the code reads what it compares with."""
    if platform.machine() != "x86_64":
        pytest.skip("where a stack's guard lies is known for x86-64 alone")
    command = ["objdump", "--disassemble", path]
    return "%fs:0x28" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def undefined_symbols(path: str) -> list[str]:
    table = readelf(path, "--dyn-syms").splitlines()
    return [line for line in table if len(line.split()) > 7 and line.split()[6] == "UND"]


def test_the_python_module_exports_its_entry_alone() -> None:
    table = readelf(str(_runtime.__file__), "--dyn-syms").splitlines()
    symbols = [line.split() for line in table if line.split()[4:5] in (["GLOBAL"], ["WEAK"])]
    assert [row[7] for row in symbols if row[6] != "UND"] == ["PyInit__runtime"]
