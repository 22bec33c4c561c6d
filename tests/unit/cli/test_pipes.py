"""Output that nobody reads ends a command as it ends other programs; other broken pipes do not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from phonebit.cli import console
from support.cli_process import Cli


@pytest.mark.parametrize("arguments", [["--version"], ["kernels", "list"]], ids=["short", "long"])
def test_a_reader_that_ends_first(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "phonebit", *arguments], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_a_broken_connection_is_an_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("typer.core.TyperCommand.invoke", broken)
    done = cli("devices", "--json")
    assert (done.code, done.err) == (2, "error: Broken pipe\n")
    assert done.document["error"]["kind"] == "BrokenPipeError"


def test_long_work_says_so_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "FIRST_LINE_SECONDS", 0.05)
    with console.progress("reading the checkpoint", 4) as advance:
        advance("comparing", 2)
        time.sleep(0.3)
    assert capsys.readouterr().err == "comparing, 2 of 4 (0 s)\n"
    with console.progress("reading the checkpoint", 4, quiet=True):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
