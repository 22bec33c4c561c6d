"""Tables in Markdown: what every section of the results page shows its numbers in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Columns = Sequence[tuple[str, str | Callable[[Any], str]]]
"""Names, and what a cell says of a row's record: a format of its fields, or a function of it."""


def records_table(records: Iterable[Any], columns: Columns, texts: int = 1) -> str:
    """A table with a row for each record; see ``markdown_table``."""
    rows = [
        [cell.format_map(record) if isinstance(cell, str) else cell(record) for _, cell in columns]
        for record in records
    ]
    return markdown_table([name for name, _ in columns], rows, texts)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table, without a line break at its end; a ``|`` in a cell is escaped.

    Args:
        head: names of the columns.
        rows: as many cells each.
        texts: columns of words, the first ones, which stand left; numbers stand right.
    """
    lines = [_line(head), _line(["---"] * texts + ["---:"] * (len(head) - texts))]
    for number, cells in enumerate(rows, start=1):
        if len(cells) != len(head):
            raise ValueError(f"row {number} has {len(cells)} cells, expected {len(head)}: {cells}")
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
