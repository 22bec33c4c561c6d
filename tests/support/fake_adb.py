"""Plays adb, with phones that are folders: fake_adb.py STATE ARGUMENTS.

STATE/phones.json has a list of phones: ``serial``, ``state``, ``model``, ``properties``,
``lacks`` (programs that its shell has not), ``plays`` (programs by name that run in place of what
was pushed), and ``loses`` (how the connection breaks: ``{"push": name}`` in the middle of that
file, ``{"shell": word, "after": n}`` after n lines of standard error of a command with that word).
A phone's files lie below STATE/SERIAL; its shell is this machine's. Every call is a line of
STATE/calls.jsonl.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PHONE_PATH = "/data/local/tmp"


def main(state: Path, arguments: list[str]) -> int:
    with (state / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    phones = json.loads((state / "phones.json").read_text())
    if arguments == ["devices", "-l"]:
        print("List of devices attached")
        for phone in phones:
            if phone["state"] != "gone":
                print(f"{phone['serial']:<22} {phone['state']} usb:1-1 model:{phone['model']}")
        return 0
    assert arguments[0] == "-s", arguments
    found = [phone for phone in phones if phone["serial"] == arguments[1]]
    if not found or found[0]["state"] == "gone":
        print(f"adb: device '{arguments[1]}' not found", file=sys.stderr)
        return 1
    command = {"shell": shell, "push": push, "pull": pull}[arguments[2]]
    return command(Phone(state, phones, found[0]), *arguments[3:])


class Phone:
    def __init__(self, state: Path, phones: list[dict[str, Any]], facts: dict[str, Any]) -> None:
        self.facts = facts
        self.root = state / facts["serial"]
        self._state = state
        self._phones = phones

    def local(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def disconnect(self) -> None:
        self.facts["state"] = "gone"
        (self._state / "phones.json").write_text(json.dumps(self._phones))


def push(phone: Phone, source: str, target: str) -> int:
    there = phone.local(target)
    if not there.parent.is_dir():
        print(f"adb: error: failed to copy '{source}' to '{target}': no folder", file=sys.stderr)
        return 1
    if phone.facts["loses"].get("push") == there.name:
        contents = Path(source).read_bytes()
        there.write_bytes(contents[: len(contents) // 2])
        phone.disconnect()
        print("adb: error: failed to read copy response: EOF", file=sys.stderr)
        return 1
    shutil.copyfile(source, there)
    there.chmod(0o600)
    return 0


def pull(phone: Phone, source: str, target: str) -> int:
    there = phone.local(source)
    if not there.is_file():
        print(f"adb: error: failed to stat remote object '{source}'", file=sys.stderr)
        return 1
    shutil.copyfile(there, target)
    return 0


def shell(phone: Phone, command: str) -> int:
    bin_folder = phone.root / "bin"
    bin_folder.mkdir(exist_ok=True)
    lines = "".join(f"[{name}]: [{value}]\n" for name, value in phone.facts["properties"].items())
    write_program(bin_folder / "getprop", f"cat <<'END'\n{lines}END\n")
    for name in phone.facts["lacks"]:
        write_program(bin_folder / name, f"echo 'sh: {name}: not found' >&2; exit 127\n")
    here = command.replace(PHONE_PATH, f"{phone.root}{PHONE_PATH}")
    for name, player in phone.facts["plays"].items():
        here = here.replace(f"{phone.root}{PHONE_PATH}/phonebit/{name}", player)
    breaks = phone.facts["loses"].get("shell")
    left = phone.facts["loses"]["after"] if breaks is not None and breaks in command else -1
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["sh", "-c", here],
            env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            print(line.replace(str(phone.root), ""), end="", file=sys.stderr, flush=True)
            left -= 1
            if left == 0:
                os.killpg(process.pid, signal.SIGHUP)
                phone.disconnect()
                return 255
        code = process.wait()
        output.seek(0)
        print(output.read().replace(str(phone.root), ""), end="")
    return code


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
