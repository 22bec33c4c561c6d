"""docs/kernels.md has each OpenCL kernel, with the tile parameters of its file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
KERNELS = {path.stem: path for path in (ROOT / "bnn_kernels").glob("*/*.cl")}
TUNED = re.compile(r"^// @tune\s+(\w+)", re.MULTILINE)


def rows(section: str, head: str) -> list[list[str]]:
    """The cells of the tables of a section whose header contains a text."""
    body = PAGE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"(?:^\|.*\n)+", body, re.MULTILINE)
    wanted = [table.splitlines() for table in tables if head in table.splitlines()[0]]
    return [line.strip("| ").split(" | ") for table in wanted for line in table[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_every_opencl_kernel_has_one_row() -> None:
    found = [name for row in rows("GPU", "computes") for name in names(row[0])]
    assert sorted(found) == sorted(KERNELS)


def test_parameters_are_those_of_the_files() -> None:
    listed = {name: names(row[-1]) for row in rows("GPU", "parameters") for name in names(row[0])}
    for name, path in KERNELS.items():
        tuned = TUNED.findall(path.read_text(encoding="utf-8"))
        assert listed.pop(name, []) == [each for each in tuned if each != "GROUP_SIZE"], name
    assert listed == {}


def test_kernels_of_the_cpu_have_the_names_that_selection_gives_them() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "cpu_backend").glob("*.[ch]*"))
    found = {name for row in rows("CPU: binary convolutions", "ISA") for name in names(row[1])}
    assert len(found) > 6 and [name for name in found if f'"{name}"' not in text] == []
