"""Inputs of ``phonebit verify``: folders of classes, archives with other names, single arrays."""

from __future__ import annotations

import io
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from phonebit import InputError, Network
from phonebit.cli.verify_inputs import read_inputs
from phonebit.images.array_files import read_arrays
from support.cli_process import Cli


@pytest.fixture
def network(u8_file: Path) -> Network:
    return Network.load(u8_file, "cpu")


def levels(count: int, value: int = 0) -> np.ndarray:
    return np.full((count, 28, 28, 1), value, np.uint8)


def test_sub_folders_are_classes_and_samples_are_spread_over_them(
    network: Network, images: list[Path], tmp_path: Path
) -> None:
    for number, image in enumerate(images[:6]):
        folder = tmp_path / f"class{number // 2}"
        folder.mkdir(exist_ok=True)
        shutil.copy(image, folder / f"{number}.png")
    (tmp_path / "class0" / "notes.txt").write_text("no image")
    (name,) = (info.name for info in network.inputs)
    everything = read_inputs(network, tmp_path, None, 0, None)[name]
    assert everything.shape == (6, 28, 28, 1)
    three = read_inputs(network, tmp_path, 3, 0, None)[name]
    assert np.array_equal(three, everything[[0, 2, 4]])
    assert len(read_inputs(network, tmp_path, 100, 0, None)[name]) == 6


def test_of_an_archive_with_other_arrays_the_one_that_fits_is_taken(
    network: Network, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, images=levels(4, 7), classes=np.arange(4))
    ((name, array),) = read_inputs(network, path, 3, 0, None).items()
    assert name == network.inputs[0].name
    assert np.array_equal(array, levels(3, 7))


def test_of_two_that_fit_none_is_guessed(
    cli: Cli, checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, train=levels(2), test=levels(2))
    text = cli.refused("verify", checkpoint, u8_file, "--dataset", path, "--interpreter")
    assert "'train'" in text
    assert "'test'" in text


def test_a_single_array_is_read(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, levels(2, 9))
    assert np.array_equal(*read_inputs(network, path, None, 0, None).values(), levels(2, 9))


def test_objects_in_a_file_are_never_loaded(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(InputError, match="not a file of arrays"):
        read_inputs(network, path, None, 0, None)


def test_arrays_far_larger_than_their_file_are_refused(network: Network, tmp_path: Path) -> None:
    bomb, lie = tmp_path / "bomb.npz", tmp_path / "lie.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(2):  # each is below the limit
            with archive.open(f"{number}.npy", "w") as member:
                np.save(member, np.zeros((150 << 20, 1), np.uint8))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 28)}
    )
    with zipfile.ZipFile(lie, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    (tmp_path / "lie.npy").write_bytes(header.getvalue())
    for path in (bomb, lie, tmp_path / "lie.npy"):
        with pytest.raises(InputError, match=rf"{path.name}: its arrays are far larger"):
            read_inputs(network, path, None, 0, None)


def test_damaged_arrays_are_no_arrays(network: Network, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=levels(2))
    whole, rng = (tmp_path / "x.npz").read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=2):
            damaged[place] = rng.integers(256)
        (tmp_path / "x.npz").write_bytes(damaged)
        with suppress(InputError, OSError):
            read_arrays(tmp_path / "x.npz")
