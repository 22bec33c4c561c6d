"""Files of arrays, as NumPy writes them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` or ``.npy`` file, by name; that of the latter is called "array".

    Raises:
        InputError: if it is no such file, has no arrays, or arrays of objects, which run code.
        OSError: if it cannot be read.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"array": loaded}
        else:
            with loaded as archive:
                arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            "not a file of arrays",
            where=str(path),
            expected="an .npz or .npy file, as np.savez and np.save write them, or a folder",
        ) from error
    if not arrays or any(array.ndim == 0 for array in arrays.values()):
        raise InputError(
            "no arrays in it", where=str(path), expected="(N, height, width, channels)"
        )
    return arrays


def fits(array: NDArray[Any], info: TensorInfo) -> bool:
    """Whether an array holds whole inputs, its axes in whatever order."""
    got, wanted = ([n for n in sorted(shape) if n > 1] for shape in (array.shape[1:], info.shape))
    return got == wanted
