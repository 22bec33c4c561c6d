"""What the tuner found, kept between runs: lines of a tuning table, one file a device.

A line has the fields of ``bnn_kernels/tuning.table``: op, shape, vendor, family, device, kernel,
parameters. The first five say what it is about, so a new line takes the place of an old one with
the same five.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from phonebit.errors import InputError, PhoneBitWarning
from phonebit.output_files import HEAD_BYTES, FileKind, check_output, write_atomically
from phonebit.text_files import read_text

KEY_FIELDS = 5
_LINE: Final = re.compile(rb"[a-z0-9_]+( [^ ]+){5}( [A-Z0-9_]+=[0-9]+)*")


def cache_folder() -> Path | None:
    """The folder of everything that PhoneBit keeps: programs, self-test results, tuning.

    Returns:
        PHONEBIT_CACHE_DIR, else XDG_CACHE_HOME/phonebit, else ~/.cache/phonebit; None if there is
        no home, or everybody can write to the folder. It need not exist.
    """
    folder = _chosen_folder()
    return None if folder is None or _is_everybodys(folder) else folder


@cache
def _is_everybodys(folder: Path) -> bool:
    """Whether others could put programs there, which is said once."""
    try:
        found = sys.platform != "win32" and folder.stat().st_mode & stat.S_IWOTH != 0
    except OSError:
        return False
    if found:
        warnings.warn(
            f"{folder}: everybody can write to this cache folder, so it is not used; "
            "chmod o-w, or set PHONEBIT_CACHE_DIR",
            PhoneBitWarning,
            stacklevel=3,
        )
    return found


def _chosen_folder() -> Path | None:
    own = os.environ.get("PHONEBIT_CACHE_DIR")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared and Path(shared).is_absolute():  # else it is to be ignored, says its specification
        return Path(shared) / "phonebit"
    try:
        return Path.home() / ".cache" / "phonebit"
    except RuntimeError:
        return None


def tuning_file(device_key: str) -> Path | None:
    """Where a device's lines are kept; None where there is no cache folder."""
    folder = cache_folder()
    if folder is None:
        return None
    return folder / "tuning" / f"{hashlib.sha256(device_key.encode()).hexdigest()[:16]}.table"


def stored_tuning(device_key: str) -> str:
    """A device's lines, or "" where there are none or they cannot be read."""
    path = tuning_file(device_key)
    if path is None:
        return ""
    try:
        return read_text(path, "a tuning table")
    except (OSError, InputError):
        return ""


def store_tuning(device_key: str, lines: Iterable[str]) -> Path | None:
    """Add lines to what is kept for a device.

    Args:
        device_key: from ``phonebit.devices.gpus.device_key``.
        lines: of a tuning table.

    Returns:
        The file; None where there is no cache folder.

    Raises:
        OSError: if it cannot be written.
    """
    path = tuning_file(device_key)
    if path is not None:
        known = stored_tuning(device_key) or f"# {' '.join(device_key.split())}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, merged_table(known, lines).encode())
    return path


def export_tuning(path: Path, lines: Iterable[str]) -> None:
    """Add lines to a tuning table, or begin one; its other lines and comments stay.

    Args:
        path: the table; missing folders are created.
        lines: to add.

    Raises:
        OSError: if the file cannot be read or written.
        InputError: if it is no tuning table.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_output(path, TABLE_FILE)
    known = read_text(path, "a tuning table") if path.exists() else ""
    write_atomically(path, merged_table(known, lines).encode())


def merged_table(known: str, lines: Iterable[str]) -> str:
    """A table with lines added.

    Args:
        known: text of a table.
        lines: to add; of several about the same, the last counts.

    Returns:
        Its text: a new line stands in the place of the old one about the same op, shape and device,
        or at the end.
    """
    waiting = {_about(line): " ".join(line.split()) for line in lines}
    merged = []
    for line in known.splitlines():
        about = _about(line)
        if len(about) < KEY_FIELDS or about not in waiting:
            merged.append(line)
        elif waiting[about]:
            merged.append(waiting[about])
            waiting[about] = ""  # written; another old line about the same is dropped
    merged += [line for line in waiting.values() if line]
    return "".join(f"{line}\n" for line in merged)


def _about(line: str) -> tuple[str, ...]:
    return tuple(line.partition("#")[0].split()[:KEY_FIELDS])


def _begins_table(head: bytes) -> bool:
    """Whether all lines but a cut-off last one are those of a table, or comments."""
    whole = head if len(head) < HEAD_BYTES else head.rpartition(b"\n")[0] or head
    lines = [b" ".join(line.partition(b"#")[0].split()) for line in whole.splitlines()]
    return all(_LINE.fullmatch(line) for line in lines if line)


TABLE_FILE: Final = FileKind("a tuning table", _begins_table, is_added_to=True)
