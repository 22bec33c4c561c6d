"""Runs commands in a process that notes what they execute, write, delete or connect to.

``python watched.py MARKER`` in a folder of its own reads, as JSON, ``[warm_up, {name: arguments}]``
and prints, as JSON, the exit code, the message and the suspicious events of each command. MARKER is
a text that every payload contains, so that code of a file is told from the code that frameworks
generate themselves.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
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
    name = Path(str(path)).name
    is_ours = OUTPUT in name or name.startswith(".phonebit-") or str(path) == os.devnull
    return isinstance(path, int) or is_ours


def run(arguments: list[str]) -> tuple[int, str]:
    """Exit code and message of a ``phonebit`` command."""
    from phonebit.cli.main import main

    messages = io.StringIO()
    sys.argv = ["phonebit", *arguments]
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    return int(code or 0), messages.getvalue()


def main(marker: str) -> None:
    """Notes nothing of the first command, whose honest file makes frameworks load their parts."""
    warm_up, commands = json.load(sys.stdin)
    code, message = run(warm_up)
    if code:
        sys.exit(message)
    watch = Watch(marker)
    results = {}
    for name, arguments in commands.items():
        watch.begin()
        code, message = run(arguments)
        results[name] = {"code": code, "message": message, "events": watch.end()}
    print(json.dumps(results))


def reports(folder: Path, marker: str, warm_up: list[str], commands: dict[str, Any]) -> Any:
    """What a watched process in a folder reports of each command."""
    child = subprocess.run(
        [sys.executable, "-B", __file__, marker],
        input=json.dumps([warm_up, commands]),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(sys.argv[1])
