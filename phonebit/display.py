"""Text from files, devices and the command line, as it may be shown.

A name may hold anything, also what steers a terminal or turns the order of letters around. Whatever
shows text to people takes it through one of these functions.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable
from typing import Final

_STEERING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the order of letters
    "\u2028\u2029\ufeff\ud800-\udfff]"  # other line ends, byte order mark, no characters at all
)
_IN_LINES: Final = re.compile(f"(?![\n\t]){_STEERING.pattern}")


def printable(text: str) -> str:
    r"""The text with an escape, as ``\x1b``, for every character that shows nothing itself."""
    return _STEERING.sub(_escape, text)


def printable_lines(text: str) -> str:
    """The same of a text of several lines."""
    return _IN_LINES.sub(_escape, text)


def escape_markup(text: str) -> str:
    """Printable, and no markup of rich."""
    from rich.markup import escape

    return escape(printable(text))


def escape_html(text: str) -> str:
    """Printable, and no markup of HTML or SVG."""
    return html.escape(printable(text))


def html_table(
    caption: str, titles: Iterable[str], rows: Iterable[Iterable[str]], numbers: Container[int]
) -> str:
    """A table of plain text, as notebooks show it; some columns have numbers."""
    sides = ("left", "right")

    def row(cells: Iterable[str], tag: str) -> str:
        texts = (
            f'<{tag} style="text-align:{sides[i in numbers]}">{escape_html(cell)}</{tag}>'
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(texts)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    top = f"<caption>{escape_html(caption)}</caption><thead>{row(titles, 'th')}</thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def bytes_text(count: int) -> str:
    """``512 B``, ``12.3 kB``, ``1.20 MB``, ``150.02 GB``; decimal prefixes."""
    if count < 1000:
        return f"{count} B"
    if count < 1e6:
        return f"{count / 1e3:.1f} kB"
    return f"{count / 1e6:.2f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"


def count_text(count: int) -> str:
    """``512``, ``12.3 k``, ``1.20 M``, ``3.4 G``."""
    for limit, divisor, prefix in ((1e3, 1, ""), (1e6, 1e3, " k"), (1e9, 1e6, " M")):
        if count < limit:
            return f"{count:,}" if divisor == 1 else f"{count / divisor:.1f}{prefix}"
    return f"{count / 1e9:.2f} G"


def _escape(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()
