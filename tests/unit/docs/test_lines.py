"""Markdown has at most 120 columns, as code has; what cannot be broken may be longer."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("benchmarks", "bnn_kernels", "docs", "examples", "tests", "training")
WIDTH = 120
UNBROKEN = re.compile(r"\s*(\||!\[|\S+$|`[^`]*`\S*$)")
"""A row of a table, an image, one word, or one piece of code."""


def long_lines(markdown: str) -> list[str]:
    """Lines of prose that are too long."""
    prose = re.sub(r"^ *```.*?^ *```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    lines = prose.splitlines()
    return [line for line in lines if len(line) > WIDTH and not UNBROKEN.match(line)]


def test_prose_is_wrapped() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md")),
    ]
    found = {page.name: long_lines(page.read_text(encoding="utf-8")) for page in pages}
    assert len(pages) > 50
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_what_cannot_be_broken_may_be_long() -> None:
    prose, word = "word " * 30, "x" * 130
    kept = f"```sh\n{prose}\n```\n| {prose} |\n![{prose}](image.svg)\n{word}\n`{prose}`;\n"
    assert long_lines(kept + prose) == [prose]
