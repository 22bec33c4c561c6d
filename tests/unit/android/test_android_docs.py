"""docs/android.md says what is there: commands, options, paths, and C++ that compiles."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from support.cli_process import command_line

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "android.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)[^\n]*\n(.*?)```", TEXT, re.DOTALL)
LINES = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("phonebit ")]
TOOL_CALLS = [line for line in LINES if "/phonebit_bench " in line or "/phonebit_run " in line]


def options_of(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("-")}


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_and_their_options_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = command_line()
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    assert options_of(words) <= known


@pytest.mark.parametrize("line", TOOL_CALLS)
def test_options_of_the_native_tools_exist(line: str) -> None:
    tools = ROOT / "runtime" / "tools"
    known = set(re.findall(r'{"(--[a-z-]+)"', (tools / "phonebit_bench.cpp").read_text()))
    assert options_of(shlex.split(line)) <= known


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 8
    assert len(TOOL_CALLS) > 1


def test_opencl_libraries_are_those_that_the_runtime_looks_for() -> None:
    source = (ROOT / "runtime" / "opencl" / "cl_api.cpp").read_text()
    named = re.findall(r'^ +"(\S+\.so(?:\.1)?)",$', source, re.MULTILINE)
    table = [line for line in TEXT.splitlines() if line.startswith("| ") and ".so" in line]
    told = [name for line in table for name in re.findall(r"`(\S+\.so(?:\.1)?)`", line)]
    assert told == [name for name in named if "/lib/" not in name]


def test_presets_exist() -> None:
    presets = (ROOT / "CMakePresets.json").read_text()
    for preset in re.findall(r"--preset (\S+)", TEXT):
        assert f'"name": "{preset}"' in presets


def test_cpp_compiles(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ or name one in CXX")
    blocks = [block for kind, block in BLOCKS if kind == "cpp"]
    source = tmp_path / "document.cpp"
    source.write_text("#include <algorithm>\n" + "".join(blocks))
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    headers = f"-I{ROOT / 'runtime' / 'include'}"
    subprocess.run([compiler, *options, headers, str(source)], check=True)
