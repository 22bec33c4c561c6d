"""Inputs for ``phonebit verify``: random, from a file of arrays, or from a folder of images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.cli.image_options import ImageFlags
from phonebit.errors import InputError
from phonebit.images.array_files import fits, read_arrays
from phonebit.images.image_files import evenly_spread, images_below, load_image
from phonebit.verification.default_inputs import default_inputs

if TYPE_CHECKING:
    from phonebit.network import Network


def read_inputs(
    network: Network, path: Path | None, samples: int | None, seed: int, input_range: str | None
) -> dict[str, NDArray[Any]]:
    """Get the inputs to verify with.

    Args:
        network: the loaded file.
        path: None: see ``default_inputs``; a folder: its images, those of folders in it included;
            a file: an ``.npz`` archive with one array per input name (for a network with one input,
            any archive in which one array fits), or an ``.npy`` file.
        samples: how many; None: 8, or all that there are. Of images, evenly spread ones, so that
            a folder per class gives all classes.
        seed: of random inputs.
        input_range: "LOW,HIGH" that images get instead of the file's own range, or None.

    Returns:
        Arrays by input name.

    Raises:
        InputError: if there are no usable inputs.
        OSError: if a file cannot be read.
    """
    if path is None:
        return default_inputs(network, samples, seed)
    if path.is_dir():
        return _read_images(network, evenly_spread(images_below(path), samples), input_range)
    arrays = read_arrays(path)
    if set(arrays) != {info.name for info in network.inputs}:
        arrays = _the_fitting_one(arrays, network)
    return {name: array[:samples] for name, array in arrays.items()}


def _read_images(
    network: Network, files: list[Path], input_range: str | None
) -> dict[str, NDArray[Any]]:
    """Images as the network's one input, by the file's own rule."""
    info = _single_input(network)
    rule = ImageFlags(range=input_range).rule_for(network, info)
    images = [load_image(file, info, rule) for file in files]
    return {info.name: np.stack([image.array for image in images])}


def _the_fitting_one(arrays: dict[str, NDArray[Any]], network: Network) -> dict[str, NDArray[Any]]:
    """Of an archive with names of its own the array that the network can read, if it is one."""
    fitting = list(arrays.values())
    if len(fitting) > 1:
        fitting = [array for array in fitting if fits(array, network.inputs[0])]
    return {_single_input(network).name: fitting[0]} if len(fitting) == 1 else arrays


def _single_input(network: Network) -> Any:
    if len(network.inputs) != 1:
        names = ", ".join(f"'{info.name}'" for info in network.inputs)
        raise InputError(
            "the network has several inputs",
            where=str(network.path),
            expected=f"an .npz file with the arrays {names}",
        )
    return network.inputs[0]
