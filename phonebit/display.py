"""Text from files, devices and the command line, as it may be shown.

A name may hold anything, also what steers a terminal or turns the order of letters around. Whatever
shows text to people takes it through one of these functions.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
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


def html_table(caption: str, titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of plain text, as notebooks show it."""

    def row(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape_html(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    top = f"<caption>{escape_html(caption)}</caption><thead>{row(titles, 'th')}</thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _escape(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()
