"""The prose of result pages: Markdown files beside the code that makes their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

BLOCK: Final = re.compile(r"\{(\w+)\}")
"""A paragraph that is all filled in: a table, or a list."""


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
