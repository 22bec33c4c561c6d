"""Kernel sources: what exists, and how a program's text is put together (README.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_INCLUDE = re.compile(r'^#include "(common/\w+\.clh)"\n', re.MULTILINE)
_KERNEL = re.compile(r"^// @kernel +\w+ +(.*)", re.MULTILINE)
_DEFINE = re.compile(r"#define (\w+(?:\(\w+\))?) ?(.*)\n")
_TUNE = re.compile(r"^// @tune\s+(\w+)\s+\{([-\d,]+)\}\s*=\s*(-?\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Tunable:
    """One ``@tune`` line.

    Attributes:
        name: the macro.
        values: those that a tuner tries.
        default: the one used where nothing else is said.
    """

    name: str
    values: tuple[int, ...]
    default: int


@cache
def kernel_paths() -> dict[str, Path]:
    """Kernel name to file, in order of name."""
    paths = sorted(FOLDER.glob("*/*.cl"), key=lambda path: path.stem)
    return {path.stem: path for path in paths}


@cache
def tunables(kernel: str) -> tuple[Tunable, ...]:
    """The ``@tune`` lines of a kernel."""
    found = _TUNE.findall(kernel_paths()[kernel].read_text(encoding="utf-8"))
    return tuple(
        Tunable(name, tuple(map(int, values.split(","))), int(default))
        for name, values, default in found
    )


@cache
def description(kernel: str) -> str:
    """What a kernel is, by its ``@kernel`` line."""
    return str(_KERNEL.findall(kernel_paths()[kernel].read_text(encoding="utf-8"))[0])


def assemble(kernel: str, defines: Mapping[str, int | str]) -> str:
    """The program text of a kernel.

    Args:
        kernel: its name.
        defines: macros; tunables that are missing have their defaults.

    Returns:
        Text for ``clCreateProgramWithSource``.
    """
    values: dict[str, int | str] = {tunable.name: tunable.default for tunable in tunables(kernel)}
    values.update(defines)
    seen: set[str] = set()

    def expand(text: str) -> str:
        def include(match: re.Match[str]) -> str:
            name = match.group(1)
            if name in seen:
                return ""
            seen.add(name)
            return expand((FOLDER / name).read_text(encoding="utf-8"))

        return _INCLUDE.sub(include, text)

    lines = "".join(f"#define {name} {value}\n" for name, value in values.items())
    return lines + expand(kernel_paths()[kernel].read_text(encoding="utf-8"))


def with_comments(kernel: str, program: str) -> str:
    """A program text of the runtime with the comments and the layout of the kernel files.

    Args:
        kernel: its name.
        program: what the driver compiles. The runtime's copies of the files have neither.

    Returns:
        The same program for people; ``program`` as it is where the runtime has other files
        (``PHONEBIT_KERNELS``).
    """
    defines: dict[str, int | str] = {}
    at = 0
    while match := _DEFINE.match(program, at):
        defines[match[1]] = match[2]
        at = match.end()
    text = assemble(kernel, defines) if kernel in kernel_paths() else ""
    return text if _code(text) == _code(program) else program


def _code(text: str) -> str:
    """A program without comments and blanks."""
    return "".join("".join(line.partition("//")[0].split()) for line in text.splitlines())
