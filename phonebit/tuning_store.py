"""What the tuner found, kept between runs: lines of a tuning table, one file a device.

A line has the fields of ``bnn_kernels/tuning.table``: op, shape, vendor, family, device, kernel,
parameters. The first five say what it is about, so a new line takes the place of an old one with
the same five.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from phonebit.errors import InputError

KEY_FIELDS = 5


def cache_folder() -> Path | None:
    """The folder of everything that PhoneBit keeps: programs, self-test results, tuning.

    Returns:
        PHONEBIT_CACHE_DIR, else XDG_CACHE_HOME/phonebit, else ~/.cache/phonebit; None if there is
        no home. It need not exist.
    """
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
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def store_tuning(device_key: str, lines: Iterable[str]) -> Path | None:
    """Add lines to what is kept for a device.

    Args:
        device_key: from ``phonebit.opencl.device_key``.
        lines: of a tuning table.

    Returns:
        The file; None where there is no cache folder.

    Raises:
        OSError: if it cannot be written.
    """
    path = tuning_file(device_key)
    if path is not None:
        known = stored_tuning(device_key) or f"# {' '.join(device_key.split())}\n"
        write_atomically(path, merged_table(known, lines))
    return path


def export_tuning(path: Path, lines: Iterable[str]) -> None:
    """Add lines to a tuning table, or begin one; its other lines and comments stay.

    Args:
        path: the table.
        lines: to add.

    Raises:
        OSError: if the file cannot be read or written.
        InputError: if it is no text.
    """
    try:
        known = path.read_text(encoding="utf-8") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise InputError("not a tuning table", where=str(path), expected="UTF-8 text") from error
    write_atomically(path, merged_table(known, lines))


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


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that others see the old or the new one, never a part.

    Args:
        path: the file; missing folders are created.
        text: all of it.

    Raises:
        OSError: if it cannot be written; then the old file is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
