"""Which paths outputs may be written to, and writing them in one step.

Every function and command of PhoneBit that writes a file where a user says goes through here, so
none of them destroys what it reads, or a file of another kind that a slip of the hand named.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from phonebit.errors import InputError

AnyPath = str | os.PathLike[str]
HEAD_BYTES: Final = 4096


@dataclass(frozen=True)
class FileKind:
    """A kind of file that PhoneBit writes.

    Attributes:
        name: with its article: "a .pbit file".
        begins: whether a file whose first ``HEAD_BYTES`` bytes are these is of this kind.
        is_added_to: lines are added to such a file, so no other file ever makes way for it.
    """

    name: str
    begins: Callable[[bytes], bool]
    is_added_to: bool = False


def check_output(
    path: AnyPath, kind: FileKind, inputs: Iterable[AnyPath | None] = (), replace_any: bool = False
) -> None:
    """Refuse an output path at which something would be lost.

    Args:
        path: where a file is to be written; an empty file, or one of the same kind, may be there.
        kind: what is written.
        inputs: what is read meanwhile, also by another name or link; None: nothing.
        replace_any: a regular file of another kind may be there, too.

    Raises:
        InputError: if the path is an input, a folder or device, or a file of another kind.
        OSError: if what is there cannot be read.
    """
    target = Path(path)
    if any(_is_same(target, Path(given)) for given in inputs if given is not None):
        raise InputError(
            "this output is one of the inputs", where=str(path), hint="give another output path"
        )
    if not target.exists():
        return
    if not target.is_file():
        got = "a folder" if target.is_dir() else "a device or pipe"
        raise InputError("not a file to write to", where=str(path), expected=kind.name, got=got)
    with target.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head and not replace_any and not kind.begins(head):
        hint = "give another output path"
        if not kind.is_added_to:
            hint += ", or replace the file with --force (replace_any=True)"
        raise InputError(f"not {kind.name}, so it is not replaced", where=str(path), hint=hint)


def _is_same(output: Path, given: Path) -> bool:
    """Links count: two names of one file, or one place where neither has a file yet."""
    try:
        return output.samefile(given)
    except OSError:
        return output.resolve() == given.resolve()


def write_output(
    path: AnyPath,
    content: bytes,
    kind: FileKind,
    inputs: Iterable[AnyPath | None] = (),
    replace_any: bool = False,
) -> None:
    """Write a file if nothing is lost by it: ``check_output``, then ``write_atomically``.

    Raises:
        InputError: as ``check_output``; nothing is written then.
        OSError: as ``write_atomically``.
    """
    check_output(path, kind, inputs, replace_any)
    write_atomically(path, content)


def _private(path: str, flags: int) -> int:
    """For the user alone until it has the permissions that it shall have."""
    return os.open(path, flags, 0o600)


def write_atomically(path: AnyPath, content: bytes) -> None:
    """Replaces ``path`` by ``content`` in one step: readers see the old file or the whole new one.

    The bytes go to a temporary file in the same folder, reach the disk, and only then take the
    name; on any failure the old file is untouched and the temporary one is removed. The new file
    has the old one's permissions. A symbolic link is replaced itself, what it points to stays.

    Raises:
        OSError: The folder is missing, read-only or full.
    """
    target = Path(path)
    temporary = target.with_name(f".phonebit-{secrets.token_hex(8)}")  # no longer than any name may
    replaced = target.lstat().st_mode if target.exists() else stat.S_IFLNK
    try:
        with open(temporary, "xb", opener=_private if stat.S_ISREG(replaced) else None) as stream:
            stream.write(content)
            stream.flush()
            if stat.S_ISREG(replaced):
                temporary.chmod(stat.S_IMODE(replaced) & 0o777)
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(target)  # the name that the user knows
        raise
