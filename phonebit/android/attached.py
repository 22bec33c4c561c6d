"""Devices that adb sees, and which of them is meant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from phonebit.android.adb_process import run_adb
from phonebit.errors import DeviceError

LIST_S: Final = 60.0
"""Longest wait for the list; adb may have to start its server first."""
READY: Final = "device"
_REMEDIES: Final = {
    "unauthorized": "unlock the phone and allow USB debugging for this computer",
    "authorizing": "unlock the phone and allow USB debugging for this computer",
    "offline": "unplug it and plug it in again, or run `adb reconnect`",
    "no permissions": "install udev rules for Android (package android-sdk-platform-tools-common)",
    "bootloader": "start Android on it: `adb reboot`",
    "recovery": "start Android on it: `adb reboot`",
    "sideload": "start Android on it: `adb reboot`",
}
_ATTACH: Final = "attach one with USB debugging switched on (Settings, Developer options)"


@dataclass(frozen=True)
class Attached:
    """A line of ``adb devices``.

    Attributes:
        serial: how adb tells devices apart.
        state: "device" where it can be used; "unauthorized", "offline", ...
        model: "Pixel_8"; "" where adb does not say.
    """

    serial: str
    state: str
    model: str

    @property
    def text(self) -> str:
        """``R58M123 (Pixel_8)``, with its state where it cannot be used."""
        model = f" ({self.model})" if self.model else ""
        return f"{self.serial}{model}" + ("" if self.state == READY else f": {self.state}")


def attached_devices(program: Path) -> list[Attached]:
    """Everything that adb sees, whether it can be used or not.

    Raises:
        DeviceError: adb does not answer, or fails.
    """
    done = run_adb(program, ["devices", "-l"], LIST_S)
    _heading, found, lines = done.output.partition("List of devices attached")
    if done.code != 0 or not found:
        raise DeviceError(
            "adb cannot list devices",
            where=str(program),
            got=done.last_line,
            hint="see whether `adb devices` works; `adb kill-server` helps where it hangs",
        )
    return [_attached(line) for line in lines.splitlines() if line.strip()]


def _attached(line: str) -> Attached:
    serial, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    state = "no permissions" if rest.startswith("no permissions") else rest.partition(" ")[0]
    models = [word.removeprefix("model:") for word in rest.split() if word.startswith("model:")]
    return Attached(serial, state, models[0] if models else "")


def choose_device(program: Path, serial: str | None = None) -> str:
    """The serial of the device that was named, or of the only one.

    Args:
        program: adb itself.
        serial: the device; None: the only one that is attached.

    Raises:
        DeviceError: there is none, it cannot be used yet, or there are several.
    """
    attached = attached_devices(program)
    wanted = [device for device in attached if serial in (None, device.serial)]
    if not wanted:
        there = ", ".join(device.text for device in attached) or "none"
        name = "a phone" if serial is None else serial
        raise DeviceError(
            "no such device is attached", where="adb", expected=name, got=there, hint=_ATTACH
        )
    if len(wanted) > 1:
        lines = "".join(f"\n  {device.text}" for device in wanted)
        raise DeviceError(f"several devices are attached:{lines}\n", hint="name one: --serial")
    [device] = wanted
    if device.state != READY:
        remedy = _REMEDIES.get(device.state, "see `adb devices`")
        raise DeviceError("the device cannot be used", got=device.text, hint=remedy)
    return device.serial
