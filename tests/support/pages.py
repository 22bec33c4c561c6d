"""Checks of HTML pages that need nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

HOSTILE: Final = "<script>alert('&')</script>\x1b[31m\u202e"
"""A name that must not act."""
VOID: Final = {"meta", "wbr"}


class _Checker(HTMLParser):
    """Every element is closed by its own end; no element that could load or run anything."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "object", "use", "image"}
        assert not [name for name, _ in attrs if name.startswith("on") or name == "src"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: str) -> None:
    """It parses, loads nothing, shows no character that steers, and has dark colours."""
    checker = _Checker()
    checker.feed(page)
    assert checker.open == []
    references = re.findall(r"\w+://[^\s\"'<>]*|url\([^)]*\)|@import", page)
    assert set(references) <= {"http://www.w3.org/2000/svg"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page)
    assert "prefers-color-scheme: dark" in page
