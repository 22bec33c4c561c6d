"""What check_bionic_symbols.py reads from nm, and what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parent / "check_bionic_symbols.py"
spec = importlib.util.spec_from_file_location("check_bionic_symbols", SCRIPT)
assert spec is not None and spec.loader is not None
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

LISTING = """
network.o:
                 U memcpy
                 U qsort_r
                 U _ZNSt3__112__next_primeEm
                 U __cxa_throw
                 U phonebit_version
                 U bcmp
                 w __cxa_thread_atexit_impl

version.o:
0000000000000010 T phonebit_version
                 U __errno_location
                 U aligned_alloc
                 U memcpy
"""


def test_only_calls_of_the_c_library_count_by_their_names_in_bionic() -> None:
    expected = ["__errno", "aligned_alloc", "memcmp", "memcpy", "qsort_r"]
    assert check.needed_symbols(LISTING) == expected


def test_an_unknown_and_a_late_function_are_named_with_what_to_do() -> None:
    levels = check.bionic_levels("# comment\n__errno 1\naligned_alloc 28\nmemcmp 1\nmemcpy 1\n")
    late, unknown = check.complaints(check.needed_symbols(LISTING), levels)
    assert late.startswith("aligned_alloc: bionic has it since API 28, expected at most 24")
    assert unknown.startswith("qsort_r: not in bionic_symbols.txt") and "libc.map.txt" in unknown


def test_the_list_is_sorted_and_names_each_function_once() -> None:
    lines = [line for line in check.LIST.read_text().splitlines() if not line.startswith("#")]
    names = [line.split()[0] for line in lines]
    assert names == sorted(set(names))
