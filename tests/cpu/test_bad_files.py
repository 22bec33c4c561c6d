"""No file crashes the runtime: damaged ones raise ModelFormatError, and what is accepted runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import ModelFormatError
from phonebit.format.records import NONE, DataType, StepKind
from phonebit.format.writer import file_bytes, seal
from support.golden import golden_graph

INTACT = to_bytes(golden_graph("residual_block_64"))
HERE = Path(__file__).parent


def refusal(content: bytes, folder: Path) -> str:
    path = folder / "damaged.pbit"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError) as caught:
        _runtime.Network(str(path), 1)
    assert str(path) in str(caught.value)
    return str(caught.value)


def refuse_or_run_damaged_files(seed: int, count: int, folder: Path) -> None:
    # In a process of its own, so that a crash is a failure and not the end of the test run.
    worker = subprocess.run(
        [
            *(sys.executable, "-P", str(HERE / "fuzz_worker.py")),
            *(str(seed), str(count), str(folder)),
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


@pytest.mark.parametrize(
    ("place", "index", "words"),
    [
        (0, -2, ["output channel 0", "input channel -2", "-1 (zeros) to 36"]),
        (5, 37, ["output channel 5", "input channel 37"]),
        (33, 2**31 - 1, ["output channel 33", "2147483647"]),
    ],
)
def test_channels_that_do_not_exist_are_refused(
    place: int, index: int, words: list[str], tmp_path: Path
) -> None:
    contents = to_contents(golden_graph("selected_channels"))
    mixed = contents.constants[contents.ops[0]["weights"]]
    data = bytearray(contents.data)
    at = int(mixed["offset"]) + 4 * place
    data[at : at + 4] = index.to_bytes(4, "little", signed=True)
    contents.data = bytes(data)
    text = refusal(file_bytes(contents), tmp_path)
    for word in ("op 0 'mixed' (select_channels)", *words):
        assert word in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dtype": DataType.F32}, "channel indices are 34 x f32, expected 34 x i32"),
        ({"count": 33, "size_bytes": 4 * 33}, "channel indices are 33 x i32, expected 34 x i32"),
    ],
)
def test_indices_must_be_integers_and_one_per_channel(
    fields: dict[str, int], words: str, tmp_path: Path
) -> None:
    contents = to_contents(golden_graph("selected_channels"))
    constants = contents.constants.copy()
    for field, value in fields.items():
        constants[field][contents.ops[0]["weights"]] = value
    contents.constants = constants
    assert words in refusal(file_bytes(contents), tmp_path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"count": 1781}, "1781 elements of 2 bytes do not make 3564 bytes"),
        ({"count": 1781, "size_bytes": 3562}, "weights are 1781 x f16, expected 1782 x f16"),
        ({"dtype": 6}, "dtype 6, expected 0 (bit), 2 (i32), 3 (f32), 4 (f16) or 5 (i8)"),
        ({"dtype": DataType.F32}, "1782 elements of 4 bytes do not make 3564 bytes"),
    ],
)
def test_halves_are_two_bytes_each_and_as_many_as_weights(
    fields: dict[str, int], words: str, tmp_path: Path
) -> None:
    contents = to_contents(golden_graph("half_weights"))
    constants = contents.constants.copy()
    for field, value in fields.items():
        constants[field][contents.ops[0]["weights"]] = value
    contents.constants = constants
    assert words in refusal(file_bytes(contents), tmp_path)


@pytest.mark.parametrize("half", [0x7C00, 0xFC00, 0x7E00, 0x7C01])
def test_halves_are_finite(half: int, tmp_path: Path) -> None:
    contents = to_contents(golden_graph("half_weights"))
    data = bytearray(contents.data)
    at = int(contents.constants[contents.ops[0]["weights"]]["offset"]) + 2 * 77
    data[at : at + 2] = half.to_bytes(2, "little")
    contents.data = bytes(data)
    text = refusal(file_bytes(contents), tmp_path)
    assert "op 0 'plain' (conv2d): weight 77 is infinite or not a number" in text


def test_halves_are_weights_of_real_values_only(tmp_path: Path) -> None:
    contents = to_contents(golden_graph("u8_first_layer_3_64"))
    constants = contents.constants.copy()
    weights = constants[contents.ops[0]["weights"]]
    weights["dtype"], weights["count"] = DataType.F16, 2 * weights["count"]
    contents.constants = constants
    assert "weights are 1152 x f16, expected 576 x bit" in refusal(file_bytes(contents), tmp_path)


def test_a_selection_without_indices_is_refused(tmp_path: Path) -> None:
    contents = to_contents(golden_graph("selected_channels"))
    ops = contents.ops.copy()
    ops["weights"][0] = NONE
    contents.ops = ops
    assert "channel indices are constant -1" in refusal(file_bytes(contents), tmp_path)


def test_slopes_of_both_signs_are_equally_many(tmp_path: Path) -> None:
    contents = to_contents(golden_graph("two_slopes_31"))
    steps = contents.steps.copy()
    prelu = np.flatnonzero(steps["kind"] == StepKind.PRELU)
    first, per_element = steps[prelu[0]], steps[prelu[1]]
    first["constant_b"] = per_element["constant_b"]
    contents.steps = steps
    text = refusal(file_bytes(contents), tmp_path)
    assert "slopes of values >= 0 are 372 x f32, expected 31 x f32" in text


def test_unknown_optional_sections_are_skipped(tmp_path: Path) -> None:
    changed = bytearray(INTACT)
    for at in range(64, 64 + 10 * 32, 32):
        if changed[at : at + 4] == (0x8001).to_bytes(4, "little"):
            changed[at : at + 4] = (0x8FFF).to_bytes(4, "little")
    path = tmp_path / "later.pbit"
    path.write_bytes(seal(changed))
    assert _runtime.Network(str(path), 1).metadata == ""
