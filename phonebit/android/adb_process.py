"""Where the program `adb` is, and one run of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from phonebit.errors import DeviceError, InputError


@dataclass(frozen=True)
class Finished:
    """A command that has ended.

    Attributes:
        code: its exit code.
        output: standard output.
        messages: standard error.
    """

    code: int
    output: str
    messages: str

    @property
    def last_line(self) -> str:
        """Where programs say what went wrong."""
        text = self.messages or self.output
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}"


def find_adb(named: Path | None = None) -> Path:
    """Where adb is.

    Args:
        named: the program; None: looked for in PATH, then in the SDK that ANDROID_HOME names.

    Raises:
        InputError: ``named`` is no program.
        DeviceError: there is none.
    """
    if named is not None:
        if not (named.is_file() and os.access(named, os.X_OK)):
            raise InputError("no program", where=f"--adb {named}", hint="give the path of adb")
        return named.absolute()
    in_sdk = Path(os.environ.get("ANDROID_HOME", "")) / "platform-tools" / "adb"
    found = shutil.which("adb") or (str(in_sdk) if in_sdk.is_absolute() else None)
    if found is None or not os.access(found, os.X_OK):
        raise DeviceError(
            "adb was not found",
            expected="in PATH, or in platform-tools of the folder that ANDROID_HOME names",
            hint="install Android's platform-tools, or give the program to --adb",
        )
    return Path(found)


def run_adb(
    program: Path,
    arguments: Sequence[str],
    limit_s: float,
    on_message: Callable[[str], None] = lambda _line: None,
) -> Finished:
    """Runs adb here.

    Args:
        program: adb.
        arguments: what it gets.
        limit_s: longest wait.
        on_message: called with each line of standard error as it comes.

    Raises:
        DeviceError: the time is over.
    """
    # Output goes to a file, so that only messages need reading meanwhile.
    messages: list[str] = []
    is_late = False
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
        ) as process,
    ):

        def end() -> None:
            nonlocal is_late
            is_late = True
            process.kill()

        timer = Timer(limit_s, end)
        timer.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:
                messages.append(line.decode(errors="replace").rstrip())
                on_message(messages[-1])
            process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if is_late:
        raise DeviceError(
            f"adb did not end within {limit_s:g} s",
            where=" ".join(arguments),
            hint="see whether `adb devices` still lists the phone, and run it again",
        )
    return Finished(process.returncode, text, "\n".join(messages))
