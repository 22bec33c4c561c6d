"""The first use of an OpenCL device says why it takes long, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILING = "compiling kernels for their first use"
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
        assert done.stderr.count(COMPILING) == count
        assert COMPILING not in done.stdout


def test_programs_that_a_tested_device_lacks_are_announced(
    gpu: str, tiny_file: Path, cold: dict[str, str]
) -> None:
    """Results of self-tests are kept, and a network needs programs of its own."""
    command = [*COMMAND, "bench", tiny_file, "--device", gpu, "--runs", "1", "--json"]
    first = subprocess.run(command, env=cold, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    kept = Path(cold["PHONEBIT_CACHE_DIR"])
    for entry in kept.rglob("*"):
        if entry.is_file() and not is_result(entry):
            entry.unlink()
    second = subprocess.run(command, env=cold, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0, second.stderr
    assert second.stderr.count(COMPILING) == 1


def is_result(entry: Path) -> bool:
    """Whether the cache has a self-test's result there, not a program."""
    return b"self-test" in entry.read_bytes()[:4096]
