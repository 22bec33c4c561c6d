"""The C and C++ APIs on their pages, from their headers; code blocks without tests' notes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

HEADERS = Path(__file__).parents[1] / "runtime" / "include" / "phonebit"
CPP_HEADERS = ("phonebit.h", "options.h", "records.h", "result.h")
SECTION = re.compile(r"^/\* -+ (.*?) -+ \*/$", re.MULTILINE)
TEST_NOTE = re.compile(r'^(```\w+) (?:skip|needs|without)="[^"]*"$', re.MULTILINE)
COMMENT = re.compile(r"^/\*(.*?)\*/$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Removes what tests read next to a code block's language, and adds headers to their pages."""
    shown = TEST_NOTE.sub(r"\1", markdown)
    if page.file.src_uri == "api/c.md":
        return shown + c_api_page((HEADERS / "phonebit_c.h").read_text("utf-8"))
    if page.file.src_uri == "api/cpp.md":
        return shown + "".join(
            f"\n## {name}\n\n```cpp\n{(HEADERS / name).read_text('utf-8').strip()}\n```\n"
            for name in CPP_HEADERS
        )
    return shown


def c_api_page(header: str) -> str:
    """The sections of the C header as Markdown: comments as text, declarations as code.

    Args:
        header: Sections begin with ``/* ---- Title ---- */``; what a declaration does stands in
            the comment in front of it.
    """
    titles = SECTION.split(header)
    if len(titles) < 3:
        raise ValueError("phonebit_c.h: expected sections")
    parts = [""]
    for title, body in zip(titles[1::2], titles[2::2], strict=True):
        parts += [f"## {title}", *_section(body)]
    return "\n\n".join(parts) + "\n"


def _section(body: str) -> list[str]:
    """Comments at the beginning of a line as paragraphs, everything between them as code."""
    parts = []
    for number, text in enumerate(COMMENT.split(body.partition("\n#ifdef __cplusplus")[0])):
        if number % 2:
            parts.append(" ".join(_plain(text).split()).replace("<", "&lt;"))
        elif text.strip():
            parts.append(f"```c\n{text.strip()}\n```")
    return parts


def _plain(comment: str) -> str:
    return re.sub(r"^ \* ?", "", comment, flags=re.MULTILINE).strip()
