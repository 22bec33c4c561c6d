"""What check_bionic_symbols.py reads from nm, and what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parent / "check_bionic_symbols.py"
spec = importlib.util.spec_from_file_location("check_bionic_symbols", SCRIPT)
assert spec is not None and spec.loader is not None
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

LISTING = """\
                 U memcpy
                 U qsort_r@GLIBC_2.8
                 w __cxa_finalize
                 U __errno_location
                 U aligned_alloc
"""


def test_undefined_functions_are_read_without_versions_and_weak_ones() -> None:
    expected = ["__errno", "aligned_alloc", "memcpy", "qsort_r"]
    assert check.needed_symbols(LISTING) == expected


def test_an_unknown_and_a_late_function_are_named_with_what_to_do() -> None:
    levels = check.bionic_levels("# comment\n__errno 1\naligned_alloc 28\nmemcpy 1\n")
    late, unknown = check.complaints(check.needed_symbols(LISTING), levels)
    assert late.startswith("aligned_alloc: bionic has it since API 28, expected at most 24")
    assert unknown.startswith("qsort_r: not in bionic_symbols.txt") and "libc.map.txt" in unknown


def test_the_list_is_sorted_and_names_each_function_once() -> None:
    lines = [line for line in check.LIST.read_text().splitlines() if not line.startswith("#")]
    names = [line.split()[0] for line in lines]
    assert names == sorted(set(names))
