"""Inputs for ``phonebit verify``: random, from an ``.npz`` file, or from a folder of pictures."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.cli.pictures import load_picture, parse_range, picture_files
from phonebit.cli.run import range_of
from phonebit.errors import InputError
from phonebit.random_inputs import random_inputs

if TYPE_CHECKING:
    from phonebit.network import Network

RANDOM_SAMPLES = 8


def read_inputs(
    network: Network, path: Path | None, samples: int | None, seed: int, input_range: str | None
) -> dict[str, NDArray[Any]]:
    """Get the inputs to verify with.

    Args:
        network: the loaded file.
        path: None: random inputs; a folder: its pictures; a file: an ``.npz`` archive with one
            array per input name, or a single array.
        samples: how many; None: 8 random ones, or all that there are.
        seed: of random inputs.
        input_range: "LOW,HIGH" for pictures and real-valued inputs, or None.

    Returns:
        Arrays by input name.

    Raises:
        InputError: if there are no usable inputs.
        OSError: if a file cannot be read.
    """
    if path is None:
        return random_inputs(network.inputs, samples or RANDOM_SAMPLES, seed)
    if path.is_dir():
        info = _single_input(network)
        value_range = parse_range(input_range) or range_of(network)
        pictures = [load_picture(file, info, value_range) for file in picture_files(path)[:samples]]
        return {info.name: np.stack([picture.array for picture in pictures])}
    arrays = _read_npz(path)
    if set(arrays) != {info.name for info in network.inputs} and len(arrays) == 1:
        arrays = {_single_input(network).name: next(iter(arrays.values()))}
    return {name: array[:samples] for name, array in arrays.items()}


def _single_input(network: Network) -> Any:
    if len(network.inputs) != 1:
        names = ", ".join(f"'{info.name}'" for info in network.inputs)
        raise InputError(
            "the network has several inputs",
            where=str(network.path),
            expected=f"an .npz file with the arrays {names}",
        )
    return network.inputs[0]


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; object arrays, which would run code, are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                return {"array": archive}
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            "not an archive of arrays",
            where=str(path),
            expected="an .npz file as np.savez writes it, or a folder of pictures",
        ) from error
    if not arrays or any(array.ndim == 0 for array in arrays.values()):
        raise InputError(
            "no arrays in it", where=str(path), expected="(N, height, width, channels)"
        )
    return arrays
