"""docs/architecture.md: the lists of files of one convolution are as long as they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE.split("### The files of one binary convolution\n", 1)[1].split("\n## ", 1)[0]
LISTS = re.findall(r"^(.*), (\d+) files:\n\n((?:.+\n)+)", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("title", "count", "items"), LISTS, ids=[of[0] for of in LISTS])
def test_a_list_has_as_many_files_as_it_says(title: str, count: str, items: str) -> None:
    files = re.findall(r"`([\w/]+\.\w+)`", items)
    assert len(files) == len(set(files)) == int(count), title
    parts = {path.name for of in ("cpu_backend", "bnn_kernels") for path in (ROOT / of).rglob("*")}
    assert all((ROOT / name).is_file() or name in parts for name in files)


def test_there_are_lists_for_both_backends() -> None:
    assert len(LISTS) == 2
