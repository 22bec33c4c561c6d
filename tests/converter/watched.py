"""Converts files in a process that notes what it executes, writes, deletes or connects to.

Run as ``python watched.py MARKER FILE...`` in a folder of its own: prints, as JSON, the exit code,
the message and the suspicious events of each file. MARKER is a text that every payload contains, so
that code of a file is told from the code that frameworks generate themselves.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from types import CodeType
from typing import Any

OUTPUT = "converted.pbit"
PROCESSES = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen")
NETWORK = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.")
FOLDERS = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.symlink")


class Watch:
    """An audit hook; what it notes is suspicious only between ``begin`` and ``end``."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._events: list[str] | None = None
        sys.addaudithook(self._hook)

    def begin(self) -> None:
        self._events = []

    def end(self) -> list[str]:
        events, self._events = self._events or [], None
        return events

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._events is not None and self._is_suspicious(event, args):
            self._events.append(f"{event} {str(args)[:200]}")

    def _is_suspicious(self, event: str, args: tuple[Any, ...]) -> bool:
        if event.startswith(PROCESSES + NETWORK):
            return True
        if event == "open":
            return _writes(args) and not _is_output(args[0])
        if event.startswith(FOLDERS):
            return not _is_output(args[0])
        return event in ("exec", "import") and _mentions(args[0], self._marker)


def _mentions(code: Any, marker: str) -> bool:
    """Whether a code object, a function in it, or a name holds a text."""
    names = (*getattr(code, "co_names", ()), *getattr(code, "co_consts", ()))
    return marker in str(code) or any(
        _mentions(part, marker) for part in names if isinstance(part, str | bytes | CodeType)
    )


def _writes(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2]
    by_mode = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    by_flags = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return by_mode or by_flags


def _is_output(path: Any) -> bool:
    """The converted network, its temporary name, and where messages go."""
    return isinstance(path, int) or OUTPUT in str(path) or str(path) == os.devnull


def convert(source: str) -> tuple[int, str]:
    """Exit code and message of ``phonebit convert``."""
    from phonebit.cli.main import main

    messages = io.StringIO()
    sys.argv = ["phonebit", "convert", source, "-o", OUTPUT, "--model", "bakery:build"]
    sys.argv += ["--input-shape", "1,3,6,6"]
    if Path(source).suffix in (".pt2", ".h5", ".keras"):
        sys.argv = sys.argv[:5]
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    return int(code or 0), messages.getvalue()


def main(marker: str, warm_up: str, files: list[str]) -> None:
    """Notes nothing of the first file, an honest one, which makes frameworks load their parts."""
    convert(warm_up)
    watch = Watch(marker)
    results = {}
    for source in files:
        watch.begin()
        code, message = convert(source)
        results[source] = {"code": code, "message": message, "events": watch.end()}
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
