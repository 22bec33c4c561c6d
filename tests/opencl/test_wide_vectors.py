"""No vector of more than 128 bits crosses a call in a kernel: bnn_kernels/README.md says why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from phonebit.bnn_kernels.sources import FOLDER

SOURCES = sorted([*FOLDER.glob("*/*.cl"), *FOLDER.glob("*/*.clh")])

WIDE = r"(?:u?long|double)(?:4|8|16)|(?:u?int|float)(?:8|16)|(?:u?short|half)16"
TYPEDEF = re.compile(r"\btypedef\s+(struct\s*\{[^}]*\}|[\w ]+)\s*\b(\w+)\s*;")
HEAD = re.compile(r"^([a-z_][\w* ]*?)\b(\w+)\(([^()]*)\)\s*\{", re.MULTILINE)
BUILT_IN = re.compile(rf"\b(?:v(?:load|store)a?(?:_half)?_?(?:8|16)\w*|convert_(?:{WIDE})\w*)")
# Macros have capital letters; `as_type` only reinterprets.
CALL = re.compile(r"\b(?!(?:as_\w+|if|for|while|switch|return|sizeof)\b)([a-z]\w*)\(")


def wide_calls(text: str) -> list[str]:
    """Heads of functions and calls that a wide vector crosses, as they stand in the text.

    An argument is wide if it names a wide variable other than by address (``&x``) or component
    (``x.lo``), or reads one from a pointer or an array (``*x``, ``x[i]``). Names count for the
    whole file.
    """
    text = re.sub(r"//.*|\\\n", "", text)
    wide = WIDE
    for definition, name in TYPEDEF.findall(text):
        if re.search(rf"\b(?:{wide})\b", definition):
            wide += f"|{name}"
    found = [match[0] for match in BUILT_IN.finditer(text)]
    for result, name, parameters in HEAD.findall(text):
        values = [result, *parameters.split(",")]
        if any(re.search(rf"\b(?:{wide})\b[^*]*$", value) for value in values):
            found.append(f"{result}{name}({parameters})")
    variables = re.findall(rf"\b(?:{wide})\s+(\w+)\s*[=;]", text)
    pointers = re.findall(rf"\b(?:{wide})\s*(?:\*\s*(\w+)|\s(\w+)\[)", text)
    argument = re.compile(
        rf"(?<![&\w.>])(?:{_any(variables)})\b(?!\s*(?:\.|->))"
        rf"|\*(?:{_any(map(''.join, pointers))})\b|(?<![&\w.>])(?:{_any(map(''.join, pointers))})\["
    )
    body = HEAD.sub("{", text)
    for call in CALL.finditer(body):
        arguments = _until_closed(body[call.end() :])
        if not re.fullmatch(wide, call[1]) and argument.search(arguments):
            found.append(f"{call[1]}({arguments})")
    return found


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(set(names))) or r"\b\B"


def _until_closed(text: str) -> str:
    depth, end = 1, 0
    while end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
        end += 1
    return text[:end]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_wide_vector_crosses_a_call(path: Path) -> None:
    assert wide_calls(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "const uint16 b = vload16(0, words);",
        "const float8 v = convert_float8(n);",
        "uint8 v = x; vstore8(v, 0, to);",
        "typedef uint16 lanes_t;\nlanes_t count_lanes(const lanes_t* x) {",
        "typedef ulong4 chunk_t;\nint count(chunk_t x) {",
        "typedef struct {\n  float16 a;\n} sum_t;\nint total(int n, const sum_t sum) {",
        "ulong8 x = a ^ b;\nconst ulong8 n = popcount(x);",
        "int8 x = a;\nint8 y = max(0, x ^ 1);",
        "void f(const uint8* x) {\n  g(*x);",
    ],
)
def test_the_rule_sees_a_wide_call(text: str) -> None:
    assert wide_calls(text)


@pytest.mark.parametrize(
    "text",
    [
        "typedef uint16 lanes_t;\nvoid count_lanes(lanes_t* counts, const lanes_t* bits) {",
        "const uint16 x = (uint16)(a, b);\nadd(&x);\nconst uint n = popcount(x.lo.lo);",
        "const int16 less = as_int16(x) < y;",
        "float4 v = vload4(0, from);\nulong2 n = popcount(pair);",
    ],
)
def test_the_rule_passes_what_is_in_memory_or_narrow(text: str) -> None:
    assert wide_calls(text) == []
