"""What is done to one device by `adb`.

Arguments are lists; what the phone's shell gets is quoted here. A call that fails because the phone
has gone says so, whatever the command was.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from phonebit.android.adb_process import Finished, run_adb
from phonebit.android.attached import READY, attached_devices
from phonebit.errors import DeviceError

ANSWER_S: Final = 60.0
"""Longest wait for a command that has little to do."""
TRANSFER_S: Final = 1800.0
"""Longest wait for a file."""


class Adb:
    """Runs adb for one device.

    Args:
        program: adb itself.
        serial: the device.
    """

    def __init__(self, program: Path, serial: str) -> None:
        self.serial = serial
        self._program = program

    def shell(
        self,
        arguments: Sequence[str],
        *,
        limit_s: float = ANSWER_S,
        on_message: Callable[[str], None] = lambda _line: None,
    ) -> Finished:
        """Runs a program on the device.

        Args:
            arguments: the program and what it gets, as it gets it: nothing of it is the shell's.
            limit_s: longest wait; the program ends with the connection.
            on_message: called with each line of standard error as it comes.

        Returns:
            Its exit code and what it wrote; a code other than 0 is no error here.

        Raises:
            DeviceError: the connection is lost, or the time is over.
        """
        command = ["-s", self.serial, "shell", shlex.join(arguments)]
        done = run_adb(self._program, command, limit_s, on_message)
        if done.code != 0:
            self._check_connection(done)
        return done

    def ask(self, arguments: Sequence[str]) -> str:
        """What a program on the device writes to standard output.

        Raises:
            DeviceError: it fails, or as for ``shell``.
        """
        done = self.shell(arguments)
        if done.code != 0:
            raise DeviceError(
                f"`{shlex.join(arguments)}` failed with code {done.code} on the device",
                where=self.serial,
                got=done.last_line,
            )
        return done.output

    def push(self, local: Path, remote: str) -> None:
        """Copies a file to the device.

        Raises:
            DeviceError: the device refuses it, or as for ``shell``.
        """
        self._transfer("push", str(local.absolute()), remote)

    def pull(self, remote: str, local: Path) -> None:
        """Copies a file from the device; ``local`` is either the whole new file or what it was.

        Raises:
            DeviceError: the device does not have it, or as for ``shell``.
            OSError: it cannot be written here.
        """
        with tempfile.TemporaryDirectory(dir=local.parent, prefix=".phonebit-pull-") as folder:
            arriving = Path(folder).absolute() / local.name
            self._transfer("pull", remote, str(arriving))
            arriving.replace(local)

    def properties(self) -> Mapping[str, str]:
        """Android's properties, as ``getprop`` lists them.

        Raises:
            DeviceError: as for ``ask``.
        """
        found = {}
        for line in self.ask(["getprop"]).splitlines():
            name, _, value = line.partition("]: [")
            found[name.removeprefix("[")] = value.removesuffix("]")
        return found

    def _transfer(self, direction: str, source: str, target: str) -> None:
        command = ["-s", self.serial, direction, source, target]
        done = run_adb(self._program, command, TRANSFER_S)
        if done.code != 0:
            self._check_connection(done)
            raise DeviceError(
                f"adb {direction} failed", where=f"{source} to {target}", got=done.last_line
            )

    def _check_connection(self, failed: Finished) -> None:
        """Raises if a command failed because the device is not there any more."""
        states = {device.serial: device.state for device in attached_devices(self._program)}
        state = states.get(self.serial, "gone")
        if state != READY:
            raise DeviceError(
                f"the connection to the device was lost: it is {state}",
                where=self.serial,
                got=failed.last_line,
                hint="attach it and run the same command again; it goes on where it stopped",
            )
