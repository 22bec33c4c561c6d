"""Reading Linux's small text files, with messages for what is missing, closed or nonsense."""

from __future__ import annotations

from pathlib import Path

from phonebit.energy.source import EnergyError


def read_text(path: Path, closed_hint: str = "run as root") -> str:
    """A file's text without surrounding blanks.

    Args:
        path: the file.
        closed_hint: what to do if reading is not permitted.

    Raises:
        EnergyError: if it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except PermissionError as error:
        raise EnergyError("not permitted to read", where=str(path), hint=closed_hint) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnergyError(f"cannot be read: {reason}", where=str(path)) from error


def read_integer(path: Path, closed_hint: str = "run as root") -> int:
    """A file's only number; see ``read_text``.

    Raises:
        EnergyError: if it cannot be read or holds something else.
    """
    text = read_text(path, closed_hint)
    try:
        return int(text)
    except ValueError as error:
        raise EnergyError(
            "not a number", where=str(path), expected="an integer", got=repr(text[:40])
        ) from error


def readable_text(path: Path) -> str:
    """A file's text, or "" where there is none that can be read: for optional labels."""
    try:
        return read_text(path)
    except EnergyError:
        return ""
