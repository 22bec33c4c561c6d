"""What becomes of a file after it was loaded changes no result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import phonebit

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


@pytest.mark.parametrize("change", [truncate, overwrite, Path.unlink])
@pytest.mark.parametrize("name", ["tiny_classifier", "selected_channels", "half_weights"])
def test_a_loaded_file_may_change(
    name: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.pbit"
    shutil.copy(GOLDEN / path.name, path)
    network = phonebit.Network.load(path, device="cpu", threads=1)
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        inputs = {tensor.name: arrays[f"in:{tensor.name}"] for tensor in network.inputs}
    before = network.activations(inputs)
    change(path)
    after = network.activations(inputs)
    for tensor, values in before.items():
        np.testing.assert_array_equal(after[tensor], values)


OVERWRITTEN_IN_PLACE = """
import sys, numpy, phonebit
network = phonebit.Network.load(sys.argv[1], device="cpu", threads=1, in_place=True)
dtypes = {"u8": "u1", "f32": "f4"}
inputs = {t.name: numpy.ones((1, *t.shape), dtypes[t.dtype]) for t in network.inputs}
with open(sys.argv[1], "r+b") as file:
    file.write(b"\\xff" * len(file.read()))
network.forward(inputs)
"""


def test_channel_numbers_of_a_mapped_file_are_those_that_were_checked(tmp_path: Path) -> None:
    """Indices of all ones bits would be read far outside of the tensor."""
    path = tmp_path / "selected_channels.pbit"
    shutil.copy(GOLDEN / path.name, path)
    subprocess.run(
        [sys.executable, "-P", "-c", OVERWRITTEN_IN_PLACE, str(path)], check=True, timeout=60
    )
