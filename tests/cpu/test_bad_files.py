"""No file crashes the runtime: damaged ones raise ModelFormatError, and what is accepted runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import engine_graphs

from phonebit import _runtime
from phonebit.converter.writer import to_bytes
from phonebit.errors import ModelFormatError
from phonebit.format.writer import seal
from phonebit.opencl import opencl_devices

INTACT = to_bytes(engine_graphs()["residual_block_64"])
HERE = Path(__file__).parent


def refusal(content: bytes, folder: Path) -> str:
    path = folder / "damaged.pbit"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError) as caught:
        _runtime.Network(str(path), 1)
    assert str(path) in str(caught.value)
    return str(caught.value)


def refuse_or_run_damaged_files(seed: int, count: int, folder: Path, *options: str) -> None:
    # In a process of its own, so that a crash is a failure and not the end of the test run.
    worker = subprocess.run(
        [
            *(sys.executable, "-P", str(HERE / "fuzz_worker.py")),
            *(str(seed), str(count), str(folder), *options),
        ],
        env=os.environ
        | {"PYTHONPATH": ":".join([str(HERE), str(HERE.parent), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert worker.returncode == 0, f"seed {seed}: {worker.stdout}\n{worker.stderr}"
    assert "refused" in worker.stdout


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_run(seed: int, tmp_path: Path) -> None:
    refuse_or_run_damaged_files(seed, 1500, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_damaged_files_are_refused_or_run(seed: int, tmp_path: Path) -> None:
    refuse_or_run_damaged_files(seed, 15_000, tmp_path)


@pytest.mark.slow
def test_damaged_files_that_run_give_the_same_on_an_opencl_device(tmp_path: Path) -> None:
    if not opencl_devices():
        pytest.skip("no OpenCL device")
    refuse_or_run_damaged_files(200, 2000, tmp_path, "opencl")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    for size in [*range(1, 130), *range(130, len(INTACT), 97)]:
        refusal(INTACT[:size], tmp_path)


def test_every_flipped_bit_fails_the_checksum_or_an_earlier_check(tmp_path: Path) -> None:
    for at in range(0, len(INTACT), 53):
        damaged = bytearray(INTACT)
        damaged[at] ^= 1 << (at % 8)
        refusal(bytes(damaged), tmp_path)


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (0, b"TFL3", ["not a .pbit file"]),
        (4, b"\2\0\0\0", ["version 2", "version 1", "update"]),
        (8, b"\x80\0\0\0", ["header_bytes", "128", "64"]),
        (12, b"\xff\xff\0\0", ["65535 sections"]),
        (16, b"\1\0\0\0\0\0\0\0", ["file_bytes is 1", str(len(INTACT))]),
        (24, b"\xff" * 8, ["section table", "does not fit"]),
        (64, b"\x63\0\0\0", ["unknown section kind 99", "newer"]),
    ],
)
def test_messages_say_what_is_wrong(
    offset: int, value: bytes, words: list[str], tmp_path: Path
) -> None:
    damaged = bytearray(INTACT)
    damaged[offset : offset + len(value)] = value
    text = refusal(seal(damaged), tmp_path)
    for word in words:
        assert word in text


def test_unknown_optional_sections_are_skipped(tmp_path: Path) -> None:
    changed = bytearray(INTACT)
    for at in range(64, 64 + 10 * 32, 32):
        if changed[at : at + 4] == (0x8001).to_bytes(4, "little"):
            changed[at : at + 4] = (0x8FFF).to_bytes(4, "little")
    path = tmp_path / "later.pbit"
    path.write_bytes(seal(changed))
    assert _runtime.Network(str(path), 1).metadata == ""
