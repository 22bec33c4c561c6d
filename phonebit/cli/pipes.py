"""Output that nobody reads any more, as in ``phonebit ... | head -1``, or cannot be encoded."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def escape_unknown_characters() -> None:
    """From now on, what an encoding lacks (``PYTHONIOENCODING=ascii``) is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if type(stream) is io.TextIOWrapper:
            stream.reconfigure(errors="backslashreplace")


def end_with_reader() -> None:
    """From now on, writing what nobody reads ends the process by SIGPIPE, as in other programs.

    Only standard output and standard error do so, unless a caller has put others in their place. A
    broken connection to a phone or to a cluster stays an error.
    """
    if sys.platform != "win32":
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if type(stream) is io.TextIOWrapper:
                setattr(sys, name, _Stream(stream))


class _Stream(io.TextIOWrapper):
    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(
            stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering
        )

    def write(self, text: str) -> int:
        with _ends_by_sigpipe():
            return super().write(text)

    def flush(self) -> None:
        with _ends_by_sigpipe():
            super().flush()


@contextmanager
def _ends_by_sigpipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        signal.raise_signal(signal.SIGPIPE)
