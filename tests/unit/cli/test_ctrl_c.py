"""Ctrl-C ends whatever a command does, with one line and code 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli_process import Cli

BEGUN = """
import sys
from phonebit.cli.main import main
print("begun", file=sys.stderr, flush=True)
main()
"""
COMPILING = "compiling OpenCL kernels"
SOON_S = 10.0
"""Far less than the commands take; a loaded machine ends processes in seconds."""
COMPILED_S = 60.0
"""The same with one kernel that a slow driver compiles: that cannot be interrupted."""


def seconds_to_end(arguments: list[object], cache: Path, line: str, delay_s: float) -> float:
    """From a signal to the end of a command, which must be code 130 and one line.

    The signal comes a while after a line on standard error.
    """
    command = [sys.executable, "-P", "-c", BEGUN, *map(str, arguments)]
    environment = {**os.environ, "PHONEBIT_CACHE_DIR": str(cache)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        assert any(line in text for text in process.stderr)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        rest = process.stderr.read()
        code = process.wait(timeout=120)
        took = time.monotonic() - begin
    assert (code, rest.splitlines()[-1:]) == (130, ["error: interrupted"]), rest
    assert "Traceback" not in rest
    return took


@pytest.mark.parametrize("delay_s", [0.1, 3.0])
@pytest.mark.parametrize("command", ["selftest", "tune", "collect"])
def test_what_uses_opencl(
    gpu: str, u8_file: Path, tmp_path: Path, command: str, delay_s: float
) -> None:
    arguments: dict[str, list[object]] = {
        "selftest": ["--device", gpu, "--again"],
        "tune": [u8_file, "--device", gpu, "--level", "exhaustive"],
        "collect": ["-o", tmp_path / "samples.jsonl", "--opencl", gpu],
    }
    took = seconds_to_end([command, *arguments[command]], tmp_path / "cache", COMPILING, delay_s)
    assert took < COMPILED_S


def test_measuring_a_cpu(gpu: str, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    arguments = ["collect", "-o", samples, "--opencl", gpu, "--device", "cpu"]
    assert seconds_to_end(arguments, tmp_path / "cache", "begun", 5.0) < SOON_S


def test_ctrl_c_is_one_line_and_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("phonebit.network.Network.load", interrupted)
    done = cli("bench", "any.pbit")
    assert (done.code, done.out, done.err) == (130, "", "error: interrupted\n")
