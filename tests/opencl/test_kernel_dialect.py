"""Kernels keep to the dialect that SPIR-V and Metal's text are made of (bnn_kernels/README.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phonebit.bnn_kernels.sources import FOLDER

APART = re.compile(r"bconv2d_lanes|\w*mma|poll_flags|dialect|values|builtins")
SOURCES = [path for path in sorted(FOLDER.glob("*/*.cl*")) if APART.fullmatch(path.stem) is None]
SPACE = r"__(?:global|local|constant)\b[^;,()=]*\*"
REFUSED = {
    "a pointer cast": rf"\(\s*{SPACE}\s*\)",
    "a pointer into a buffer": rf"{SPACE}\s*(?:const|restrict)?\s*\w+\s*=",
    "an array of pointers": rf"{SPACE}\s*\w+\s*\[",
    "a vector literal": r"\((?:u?(?:char|short|int|long)|float|half)\d+\)\((?:[^(),]|\([^()]*\))*,",
    "a byte of packed bits": r"\b(?:uchar|ushort)\)\s*packed",
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_kernel_names_buffers_and_indices(path: Path) -> None:
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    text = text.replace("bit_bytes[pixel * (4 * OUT_WORDS) + QUOTIENT(at, 8)] = (uchar)packed;", "")
    found = {name: re.findall(pattern, text) for name, pattern in REFUSED.items()}
    assert {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.parametrize(
    "text",
    [
        "*(__global const int4*)(row + channel)",
        "__global const uint* tap = input + 4;",
        "__global const words_t* filter_words[TILE_FILTERS];",
        "const float4 v = (float4)(f(x), 1.0f, 2.0f, 3.0f);",
        "to[0] = (uchar)packed;",
        "__local const float* from = map;",
    ],
)
def test_the_rule_sees_what_it_refuses(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in REFUSED.values())


@pytest.mark.parametrize(
    "text",
    [
        "void f(__global const uint* input, int at) { const uint4 v = (uint4)(input[at]); }",
        "const float4 v = VECTOR_4(float, a, b, c, d);",
        "__local uint partial[32 * LANES];",
    ],
)
def test_the_rule_passes_buffers_by_name(text: str) -> None:
    assert not any(re.search(pattern, text) for pattern in REFUSED.values())
