"""Headers of the CPU's binary convolutions keep the grammar of the OpenCL kernels' headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "cpu_backend"
KEYS = ("kernel", "math", "in", "out", "weights", "requires", "tune", "source")
KERNELS = sorted(str(path.relative_to(BACKEND)) for path in BACKEND.glob("*/binary_conv_*.cpp"))

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def comment(kernel: str) -> list[str]:
    """The lines of the comment that a file begins with."""
    text = (BACKEND / kernel).read_text(encoding="utf-8")
    match = re.match(r"(?://.*\n)+", text)
    assert match is not None
    return match[0].splitlines()


def header(kernel: str) -> list[tuple[str, str]]:
    """(key, text) of each field. Continuation lines are indented; an empty one ends the header."""
    fields: list[tuple[str, str]] = []
    for line in comment(kernel):
        if match := re.fullmatch(r"// @(\w+) +(\S.*)", line):
            fields.append((match[1], match[2]))
        elif re.match(r"// {11}\S", line):
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line[2:].strip()}")
        else:
            assert line == "//", f"cut off from the field above: {line}"
            break
    return fields


def test_there_are_kernels() -> None:
    assert len(KERNELS) >= 8


@every_kernel
def test_header_has_its_fields_once_and_in_order(kernel: str) -> None:
    keys = [key for key, _ in header(kernel)]
    assert keys == sorted(set(keys), key=KEYS.index)
    assert set(KEYS) - {"requires", "tune"} <= set(keys)
    for key, text in header(kernel):
        assert "@" not in text, f"two fields in the line of @{key}"


@every_kernel
def test_header_names_the_kernel_of_the_file(kernel: str) -> None:
    match = re.fullmatch(r"(\w+)   \S.*", dict(header(kernel))["kernel"])
    assert match is not None
    text = (BACKEND / kernel).read_text(encoding="utf-8")
    assert f'"{match[1]}"' in text


@every_kernel
def test_math_says_what_is_accumulated(kernel: str) -> None:
    assert re.search(r"\bacc = ", dict(header(kernel))["math"])


@every_kernel
def test_lines_are_short(kernel: str) -> None:
    """clang-format leaves comments as they are."""
    assert max(map(len, comment(kernel))) <= 110


def test_carry_save_derivation_defines_its_sums() -> None:
    text = "\n".join(comment("avx512/binary_conv_carry_save.cpp"))
    assert re.search(r"^//   V .*\n//  .* s = a \^ b \^ c$", text, re.MULTILINE)
    assert re.search(r"^//   H       the three columns' sums", text, re.MULTILINE)


def test_fields_stand_in_headers_only() -> None:
    for path in BACKEND.glob("*/*.*"):
        name = str(path.relative_to(BACKEND))
        found = re.findall(r"^// @(?:kernel|math|in|out|weights|source)\b", path.read_text(), re.M)
        assert len(found) == (6 if name in KERNELS else 0), name
