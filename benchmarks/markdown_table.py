"""Tables in Markdown: what every section of the results page shows its numbers in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table, without a line break at its end.

    Args:
        head: names of the columns.
        rows: as many cells each; a ``|`` in one is escaped.
        texts: columns of words, the first ones, which stand left; numbers stand right.

    Raises:
        ValueError: a row has more or fewer cells than the head.
    """
    lines = [_line(head), _line(["---"] * texts + ["---:"] * (len(head) - texts))]
    for number, cells in enumerate(rows, start=1):
        if len(cells) != len(head):
            raise ValueError(f"row {number} has {len(cells)} cells, expected {len(head)}: {cells}")
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
