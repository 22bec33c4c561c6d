"""Phones for tests, with a fake adb (fake_adb.py)."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

FAKE_ADB = Path(__file__).with_name("fake_adb.py")
PHONE_FOLDER = "/data/local/tmp/phonebit"

PROPERTIES = {
    "ro.product.model": "Pixel 8",
    "ro.build.version.release": "14",
    "ro.build.version.sdk": "34",
    "ro.soc.manufacturer": "Google",
    "ro.soc.model": "Tensor G3",
    "ro.product.cpu.abi": "arm64-v8a",
    "ro.product.cpu.abilist": "arm64-v8a,armeabi-v7a",
}

ELF_MACHINES = {"x86_64": 62, "arm64-v8a": 183, "armeabi-v7a": 40}


_PLAYED = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/arguments
printf '%s' "$LD_LIBRARY_PATH" > {folder}/library_path
cat {folder}/said >&2
cat {folder}/document.json
exit {code}
"""


class FakePhones:
    """Phones that a fake adb sees.

    Args:
        folder: for everything about them.
    """

    def __init__(self, folder: Path) -> None:
        self._state = folder / "state"
        self._state.mkdir()
        self._phones: list[dict[str, Any]] = []
        self.adb = folder / "adb"
        command = shlex.join([sys.executable, "-I", "-S", str(FAKE_ADB), str(self._state)])
        self.adb.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.adb.chmod(0o755)
        self._write()

    def attach(self, serial: str, **facts: Any) -> Path:
        """Attaches a phone, or changes one; gives the folder that holds its files."""
        known = [phone for phone in self._phones if phone["serial"] == serial]
        if not known:
            known = [
                {"serial": serial, "state": "device", "model": "Pixel_8", "lacks": [],
                 "properties": PROPERTIES, "plays": {}, "loses": {}}
            ]  # fmt: skip
            self._phones += known
            (self._state / serial / "data/local/tmp").mkdir(parents=True)
        known[0].update(facts)
        self._write()
        return self._state / serial

    def calls(self, kind: str) -> list[list[str]]:
        """Arguments of the calls so far of one kind: "shell", "push", "pull"."""
        lines = (self._state / "calls.jsonl").read_text().splitlines()
        calls = [json.loads(line) for line in lines]
        return [call[3:] for call in calls if call[2:3] == [kind]]

    def _write(self) -> None:
        (self._state / "phones.json").write_text(json.dumps(self._phones))


def tool_stubs(folder: Path, abi: str) -> Path:
    """A folder with the headers of native tools: enough to be pushed, not to be started."""
    folder.mkdir()
    for name in ("phonebit_bench", "phonebit_run"):
        header = b"\x7fELF" + bytes(14) + ELF_MACHINES[abi].to_bytes(2, "little")
        (folder / name).write_bytes(header + name.encode())
    return folder


class PlayedBench:
    """A program in place of ``phonebit_bench``: it keeps its arguments and prints a document."""

    def __init__(self, folder: Path, document: Any, code: int = 0, said: str = "") -> None:
        self.path = folder / "played_bench"
        self._folder = folder
        self.path.write_text(_PLAYED.format(folder=folder, code=code))
        self.path.chmod(0o755)
        (folder / "said").write_text(said + "\n" * bool(said))
        text = document if isinstance(document, str) else json.dumps(document)
        (folder / "document.json").write_text(text)

    @property
    def plays(self) -> dict[str, str]:
        return {"phonebit_bench": str(self.path)}

    @property
    def arguments(self) -> list[str]:
        return (self._folder / "arguments").read_text().splitlines()

    @property
    def library_path(self) -> str:
        return (self._folder / "library_path").read_text()
