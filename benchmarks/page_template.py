"""The prose of result pages: Markdown files beside the code that makes their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

BLOCK: Final = re.compile(r"\{(\w+)\}")
"""A paragraph that is all filled in: a table, or a list."""


def filled(template: Path, values: Mapping[str, Any]) -> str:
    """A template with its values, for which names stand in braces as in ``str.format``.

    A block without content is left out, with the prose in front of it; so is a section, from one
    heading to the next, that has blocks and no content in any.
    """
    sections = re.split(r"\n\n(?=#)", template.read_text().strip())
    return "\n\n".join(filter(None, (_section(text, values) for text in sections))) + "\n"


def _section(text: str, values: Mapping[str, Any]) -> str:
    paragraphs = text.split("\n\n")
    blocks = [found[1] for each in paragraphs if (found := BLOCK.fullmatch(each))]
    if blocks and not any(values[name] for name in blocks):
        return ""
    kept, is_wanted = [], True
    for paragraph in reversed(paragraphs):
        if block := BLOCK.fullmatch(paragraph):
            is_wanted = bool(values[block[1]])
        if is_wanted or paragraph.startswith("#"):
            kept.append(paragraph.format_map(values))
    return "\n\n".join(reversed(kept))
