"""Files of arrays, as NumPy writes them."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any, Final

from numpy.lib import format as numpy_format
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo

MAX_RATIO: Final = 16
"""Bytes of arrays for each byte of an archive: images of real scenes shrink less."""
SMALL_BYTES: Final = 256 << 20
"""Bytes of arrays that any file may have."""

HEADERS: Final = {
    (1, 0): numpy_format.read_array_header_1_0,
    (2, 0): numpy_format.read_array_header_2_0,
}


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` or ``.npy`` file, by name; that of the latter is called "array".

    Raises:
        InputError: if it is no such file, has no arrays, or arrays of objects, which run code; or
            its arrays would be far larger than the file.
        OSError: if it cannot be read.
    """
    left = max(MAX_RATIO * path.stat().st_size, SMALL_BYTES)
    with path.open("rb") as file:
        try:
            arrays = _arrays(file, left, str(path))
        except (InputError, OSError):
            raise
        except Exception as error:  # damaged headers raise nearly anything
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


def _arrays(file: IO[bytes], left: int, where: str) -> dict[str, NDArray[Any]]:
    """The arrays of an open file, of which all together have at most ``left`` bytes."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        _check_size(file, left, where)
        return {"array": numpy_format.read_array(file, allow_pickle=False)}
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                left -= _check_size(member, left, where)
                array = numpy_format.read_array(member, allow_pickle=False)
                arrays[name.removesuffix(".npy")] = array
    return arrays


def _check_size(file: IO[bytes], left: int, where: str) -> int:
    """The bytes of the array that begins here, as its header says; the file is at its start again.

    Raises:
        InputError: if they are too many.
    """
    version = numpy_format.read_magic(file)
    shape, _, dtype = HEADERS[version](file)
    file.seek(0)
    size = math.prod(shape) * dtype.itemsize
    if size > left:
        raise InputError(
            "its arrays are far larger than the file",
            where=where,
            expected=f"at most {left} bytes",
            got=f"{dtype} of shape {shape}",
        )
    return size


def fits(array: NDArray[Any], info: TensorInfo) -> bool:
    """Whether an array holds whole inputs, its axes in whatever order."""
    got, wanted = ([n for n in sorted(shape) if n > 1] for shape in (array.shape[1:], info.shape))
    return got == wanted
