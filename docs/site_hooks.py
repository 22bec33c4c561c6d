"""The C API as a page, made from its header; code blocks without what only tests read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

HEADER = Path(__file__).parents[1] / "runtime" / "include" / "phonebit" / "phonebit_c.h"
SECTION = re.compile(r"^/\* -+ (.*?) -+ \*/$", re.MULTILINE)
TEST_NOTE = re.compile(r'^(```\w+) (?:skip|needs|without)="[^"]*"$', re.MULTILINE)
COMMENT = re.compile(r"^/\*(.*?)\*/$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds ``api/c.md``."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api/c.md", content=c_api_page(HEADER.read_text("utf-8"))))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Removes what tests read beside a code block's language: the site would show it as text."""
    return TEST_NOTE.sub(r"\1", markdown)


def c_api_page(header: str) -> str:
    """The C API as Markdown: its comments as text, its declarations as code.

    Args:
        header: Sections begin with ``/* ---- Title ---- */``; what a declaration does stands in
            the comment in front of it.
    """
    first = COMMENT.search(header)
    titles = SECTION.split(header)
    if first is None or len(titles) < 3:
        raise ValueError("phonebit_c.h: expected a comment at the top, and sections")
    parts = ["# C API", "```\n" + _plain(first[1]) + "\n```"]
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
