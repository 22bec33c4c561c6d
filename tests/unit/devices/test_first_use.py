"""The first use of an OpenCL device: it says why it takes long, once, and Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli_process import Cli

COMMAND = (sys.executable, "-P", "-c", "from phonebit.cli.main import main; main()")


@pytest.fixture
def cold(tmp_path: Path) -> dict[str, str]:
    """An environment whose cache folders are empty."""
    return {**os.environ, "PHONEBIT_CACHE_DIR": str(tmp_path / "cache")}


def test_the_first_use_says_what_it_does_and_the_second_nothing(
    gpu: str, tiny_file: Path, cold: dict[str, str]
) -> None:
    command = [*COMMAND, "bench", tiny_file, "--device", gpu, "--runs", "1", "--json"]
    for count in (1, 0):
        done = subprocess.run(command, env=cold, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("first use of this OpenCL device") == count
        assert "first use" not in done.stdout


def test_ctrl_c_ends_a_self_test(gpu: str, cold: dict[str, str]) -> None:
    command = [*COMMAND, "selftest", "--device", gpu, "--again"]
    with subprocess.Popen(command, env=cold, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("first use" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        assert process.wait(timeout=120) == 130  # one kernel of a slow driver may be compiled still
        assert process.stderr.read().endswith("error: interrupted\n")
        assert time.monotonic() - begin < 60


def test_ctrl_c_is_one_line_and_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("phonebit.network.Network.load", interrupted)
    done = cli("bench", "any.pbit")
    assert (done.code, done.out, done.err) == (130, "", "error: interrupted\n")
