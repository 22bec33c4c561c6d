"""Reading text from people and tools: bounded, and every damage an ``InputError``.

Settings, labels, profiles, samples, plans and orders come through here, so none of them fills the
memory, and none is nested deeply enough to end in a traceback.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from phonebit.errors import InputError

MAX_BYTES: Final = 16 << 20
"""Of settings, labels and profiles."""
MAX_RECORD_BYTES: Final = 256 << 20
"""Of files of measurements, which may hold a million lines."""
DAMAGED: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading fields of a parsed document raises where it is not what it should be."""


def read_text(path: Path, what: str, max_bytes: int = MAX_BYTES) -> str:
    """Read a text file; also of a device or pipe no more than the limit is read.

    A pipe is read to its end if something writes to it; nobody waits for what may never come.

    Args:
        path: the file.
        what: it should be, with an article: "a file of samples".
        max_bytes: the limit.

    Raises:
        InputError: if it is larger, or not UTF-8.
        OSError: if it cannot be read.
    """
    with open(path, "rb", opener=_at_once) as file:
        content = file.read(max_bytes + 1)
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    if is_pipe and not content:
        raise InputError("a pipe to which nothing writes", where=str(path))
    if len(content) > max_bytes:
        limit = f"at most {max_bytes >> 20} MiB"
        raise InputError(f"too large for {what}", where=str(path), expected=limit)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputError(f"not {what}", where=str(path), expected="UTF-8 text") from None


def _at_once(path: str, flags: int) -> int:
    """Opens a pipe that nothing writes to, too, as one that is at its end."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "set_blocking") and sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return descriptor


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON document.

    Raises:
        InputError: if it is none, or nested too deeply, or holds a number of thousands of digits.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("not JSON", where=where, got=str(error)) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: as ``read_text`` and ``parse_json``.
        OSError: if it cannot be read.
    """
    text = read_text(path, "valid TOML")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("not valid TOML", where=str(path), got=str(error)) from None
