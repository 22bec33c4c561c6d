"""Calls of the C++ interface whose buffers vanish, or are of another type, do not compile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "runtime" / "include"
BEGIN = """
#include <phonebit/phonebit.h>
#include <array>
template <class T> std::vector<T> made() { return std::vector<T>(4); }
using Floats = std::vector<float>;
const auto done = [](const phonebit::Result<void>&) {};
"""
STAYING = (
    "auto job = network.forward_async({in}, {out}, done);",
    "auto job = network.forward_async({in}, {out}, 2);",
    "auto job = network.forward_async({{in.data(), 16}}, {{out.data(), 16}});",
    "auto job = network.forward_async({phonebit::Span<const float>(in)}, {out});",
    "auto job = network.forward_async({phonebit::Input(in)}, {out});",
    "auto result = network.forward({made<float>()}, {out});",  # which ends before its buffer
)
GONE = "this buffer would be gone before the inference reads it; give it a name and keep it"
TYPE = "a tensor is an array of float, of uint8_t, or of uint32_t (words of bits)"
REFUSED = (  # of a type each: a compiler says the same of one type once
    ("auto job = network.forward_async({made<float>()}, {out}, done);", GONE),
    ("auto job = network.forward_async({made<uint8_t>()}, {out});", GONE),
    ("auto job = network.forward_async({std::array<uint8_t, 4>{}}, {out});", GONE),
    ("auto job = network.forward_async({in}, {made<float>()});", ""),
    ("std::vector<double> wide(4); auto job = network.forward_async({wide}, {out});", TYPE),
    ("std::vector<int> whole(4); auto result = network.forward({in}, {whole});", TYPE),
)


def compiled(statements: Sequence[str]) -> str:
    """What a compiler says of a program with these statements, a function and a line each."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ or name one in CXX")
    head = "void f{}(phonebit::Network& network, Floats& in, Floats& out)"
    functions = [
        f"{head.format(i)} {{ {statement} (void)in, (void)out; }}\n"
        for i, statement in enumerate(statements)
    ]
    options = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused", f"-I{HEADERS}"]
    process = subprocess.run(
        [compiler, *options, "-xc++", "-"],
        input=BEGIN + "".join(functions), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return process.stderr


def test_buffers_that_stay_compile() -> None:
    assert compiled(STAYING) == ""


def test_buffers_that_vanish_or_are_of_another_type_do_not() -> None:
    said = compiled([statement for statement, _ in REFUSED])
    for reason in (GONE, TYPE):
        errors = re.findall(rf"error: [^\n]*{re.escape(reason)}", said)
        assert len(errors) == sum(reason == other for _, other in REFUSED), said
    lines = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error", said)}
    begin = BEGIN.count("\n") + 1
    assert {begin + i for i, (_, reason) in enumerate(REFUSED) if not reason} <= lines, said
