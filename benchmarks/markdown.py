"""Markdown of the result pages: tables, and prose from files next to the code that makes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

Columns = Sequence[tuple[str, str | Callable[[Any], str]]]
"""Names, and what a cell says of a row's record: a format of its fields, or a function of it."""
BLOCK: Final = re.compile(r"\{(\w+)\}")
"""A paragraph that is all filled in: a table, or a list."""
WORD: Final = re.compile(r"(?:`[^`]*`|[^\s`])+")
"""What stands between two blanks; code is not broken."""
WIDTH: Final = 120


def records_table(records: Iterable[Any], columns: Columns, texts: int = 1) -> str:
    """A table with a row for each record; see ``markdown_table``."""
    rows = [
        [cell.format_map(record) if isinstance(cell, str) else cell(record) for _, cell in columns]
        for record in records
    ]
    return markdown_table([name for name, _ in columns], rows, texts)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table, without a line break at its end; a ``|`` in a cell is escaped.

    The first columns, ``texts``, are words and stand left; numbers stand right.
    """
    lines = [_line(head), _line(["---"] * texts + ["---:"] * (len(head) - texts))]
    for number, cells in enumerate(rows, start=1):
        if len(cells) != len(head):
            raise ValueError(f"row {number} has {len(cells)} cells, expected {len(head)}: {cells}")
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def filled(template: Path, values: Mapping[str, Any]) -> str:
    """A template with its values, whose names stand in braces; no line break at its end.

    A block without content is left out, with the prose in front of it; so is the heading of a
    section in which nothing is left, unless it is the first.
    """
    texts = re.split(r"\n\n(?=#)", template.read_text().strip())
    first, *others = (_paragraphs(text, values) for text in texts)
    sections = [first, *(section for section in others if len(section) > 1)]
    return "\n\n".join(paragraph for section in sections for paragraph in section)


def _paragraphs(section: str, values: Mapping[str, Any]) -> list[str]:
    kept: list[str] = []
    is_wanted = True
    for paragraph in reversed(section.split("\n\n")):
        if block := BLOCK.fullmatch(paragraph):
            is_wanted = bool(values[block[1]])
        if is_wanted or paragraph.startswith("#"):
            kept.insert(0, paragraph.format_map(values))
    return kept


def wrapped(page: str) -> str:
    """A page with prose in lines of at most ``WIDTH`` columns.

    Tables, headings, images and marks are one line each, and stay; paragraphs without a line that
    is too long stay, too.
    """
    return "\n\n".join(map(_wrapped_block, page.split("\n\n")))


def _wrapped_block(block: str) -> str:
    if block.startswith(("|", "#", "!", "<")) or all(len(x) <= WIDTH for x in block.split("\n")):
        return block
    return "\n".join(map(_filled_item, re.split(r"\n(?=- )", block)))


def _filled_item(item: str) -> str:
    """A paragraph, or an item of a list, whose lines after the first are indented."""
    lines, indent = [""], "  " if item.startswith("- ") else ""
    for word in WORD.findall(item):
        if lines[-1].strip() and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append(indent + word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)
