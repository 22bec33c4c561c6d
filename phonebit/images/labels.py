"""Class names as people write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phonebit.errors import InputError
from phonebit.text_files import parse_json, read_text


def read_labels(path: Path) -> list[str]:
    """Class names from a text file (one per line, blank lines ignored) or a JSON list of strings.

    Args:
        path: the file.

    Returns:
        The names, at least one.

    Raises:
        InputError: if the file is neither, or names no class.
        OSError: if it cannot be read.
    """
    text = read_text(path, "a text file")
    if not text.lstrip().startswith(("[", "{")):
        return check_labels([line.strip() for line in text.splitlines() if line.strip()], str(path))
    return check_labels(parse_json(text, str(path)), str(path))


def check_labels(names: Any, where: str) -> list[str]:
    """The names, if they are names.

    Raises:
        InputError: if they are no list of one or more texts; ``where`` names them in it.
    """
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise InputError(
            "no class names in it", where=where, expected="one a line, or a JSON list of strings"
        )
    return names
