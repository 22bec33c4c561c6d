"""Native programs, started on the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from phonebit.android.adb import Adb
from phonebit.android.adb_process import Finished
from phonebit.android.pushing import PHONE_FOLDER
from phonebit.errors import DeviceError, PhoneBitWarning

_REASONS: Final = {
    126: "the system does not let it start",
    127: "it is not there, or not complete",
    132: "it used an instruction that the processor does not have",
    134: "it aborted",
    137: "the system ended it, most likely for want of memory",
    139: "it crashed",
}
"""Exit codes of a shell, where the program itself could not say why."""


def run_tool(
    adb: Adb,
    tool: str,
    arguments: Sequence[str],
    *,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    on_message: Callable[[str], None] = lambda _line: None,
) -> str:
    """Runs one of the native programs.

    Args:
        adb: the device.
        tool: its name.
        arguments: what it gets.
        limit_s: longest wait.
        environment: variables that it gets.
        on_message: called with each line of standard error as it comes.

    Returns:
        What it wrote to standard output.

    Raises:
        DeviceError: it failed, or as for ``Adb.shell``.

    Warns:
        PhoneBitWarning: it warned of something.
    """
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    program = [*(["env", *settings] if settings else []), f"{PHONE_FOLDER}/{tool}"]
    done = adb.shell([*program, *arguments], limit_s=limit_s, on_message=on_message)
    if done.code != 0:
        raise DeviceError(f"{tool} failed on the phone: {_reason(tool, done)}", where=adb.serial)
    for line in done.messages.splitlines():
        if line.startswith(f"{tool}: warning: "):
            warnings.warn(line, PhoneBitWarning, stacklevel=2)
    return done.output


def _reason(tool: str, failed: Finished) -> str:
    """What the program says after its name, in one or more lines at the end of all messages.

    A program that was ended could not say anything: its last line tells how far it came.
    """
    _progress, is_said, said = failed.messages.rpartition(f"{tool}: ")
    if is_said and failed.code not in _REASONS:
        return said
    last = failed.messages.strip().splitlines()[-1:]
    return "; ".join([_REASONS.get(failed.code, f"exit code {failed.code}"), *last])
