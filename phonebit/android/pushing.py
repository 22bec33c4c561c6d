"""Files for the device: those that it has already stay where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from phonebit.android.adb import Adb
from phonebit.errors import InputError
from phonebit.missing_files import missing_file

PHONE_FOLDER: Final = "/data/local/tmp/phonebit"
"""Where a shell without further rights may keep and start programs."""
CACHE_FOLDER: Final = f"{PHONE_FOLDER}/cache"
"""What the native tools keep of the phone's GPU: programs and self-tests."""

_COMMAND_CHARACTERS: Final = 3000
"""Of names in a command: adb once ended them at 4096 bytes."""


@dataclass(frozen=True)
class Pushed:
    """What a push did.

    Attributes:
        sent: paths on the device of files that were copied.
        known: of those that it had.
        sent_bytes: sum of the former.
    """

    sent: tuple[str, ...]
    known: tuple[str, ...]
    sent_bytes: int


def phone_path(local: Path) -> str:
    """Where a file goes on the device."""
    return f"{PHONE_FOLDER}/{local.name}"


def phone_paths(files: Iterable[Path]) -> dict[str, Path]:
    """Where files go on the device, all into one folder.

    Raises:
        InputError: two have the same name, or one does not exist.
    """
    found: dict[str, Path] = {}
    for file in files:
        if not file.is_file():
            raise missing_file(file, InputError)
        there = phone_path(file)
        if there in found and found[there].resolve() != file.resolve():
            raise InputError(
                "two files would have the same name on the device",
                where=file.name,
                got=f"{found[there]} and {file}",
                hint="rename one, or push them one after the other",
            )
        found[there] = file
    return found


def install(
    adb: Adb,
    programs: Sequence[Path],
    files: Sequence[Path],
    progress: Callable[[str], None] = lambda _name: None,
) -> Pushed:
    """Copies programs, which may then be started, and other files.

    Args:
        adb: the device.
        programs: native tools.
        files: what they shall work on.
        progress: as for ``push_files``.

    Raises:
        InputError: a file is not there, or two have the same name.
        DeviceError: as for ``push_files``.
        OSError: likewise.
    """
    pushed = push_files(adb, phone_paths([*programs, *files]), progress)
    adb.ask(["chmod", "755", *map(phone_path, programs)])
    return pushed


def push_files(
    adb: Adb,
    files: Mapping[str, Path],
    progress: Callable[[str], None] = lambda _name: None,
) -> Pushed:
    """Copies files unless the device has them.

    A file is known by its SHA-256, so that one that a lost connection cut off is sent again. The
    `sha256sum` of Android 7 is missing: there, everything is sent.

    Args:
        adb: the device.
        files: local ones by path on the device.
        progress: called with a name before each file, whether it is copied or not.

    Raises:
        DeviceError: the device refuses a file, or is lost.
        OSError: a file cannot be read.
    """
    folders = sorted({str(PurePosixPath(path).parent) for path in files})
    adb.ask(["mkdir", "-p", *folders])
    there = _digests(adb, files)
    sent, known, sent_bytes = [], [], 0
    for remote, local in files.items():
        progress(local.name)
        if there.get(remote) == _digest(local):
            known.append(remote)
            continue
        adb.push(local, remote)
        sent.append(remote)
        sent_bytes += local.stat().st_size
    return Pushed(tuple(sent), tuple(known), sent_bytes)


def _digest(file: Path) -> str:
    with file.open("rb") as contents:
        return hashlib.file_digest(contents, "sha256").hexdigest()


def _digests(adb: Adb, paths: Iterable[str]) -> dict[str, str]:
    """Of those that the device has; its complaints about others are no error."""
    found = {}
    for some in _short_lists(paths):
        for line in adb.shell(["sha256sum", *some]).output.splitlines():
            digest, _, path = line.partition("  ")
            found[path] = digest
    return found


def _short_lists(paths: Iterable[str]) -> Iterator[list[str]]:
    """The same, in lists of limited length."""
    some: list[str] = []
    for path in paths:
        if some and sum(map(len, some)) + len(path) > _COMMAND_CHARACTERS:
            yield some
            some = []
        some.append(path)
    if some:
        yield some
