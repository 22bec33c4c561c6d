"""Maps in PyTorch's order of axes, brought into the order of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo

Array = NDArray[Any]
Layout = Literal["nhwc", "nchw"]
"""Order of an array's axes: N batch, H rows, W columns, C channels."""


def to_nhwc(
    arrays: Mapping[str, Array],
    infos: Sequence[TensorInfo],
    layout: Layout | None,
    may_be_nchw: bool,
) -> dict[str, Array]:
    """Move the channels of arrays that have them first to the end.

    Args:
        arrays: by input name; those of rank 4 have the order in question, if the input is a map;
            others are left alone.
        infos: the file's inputs, (height, width, channels).
        layout: the order of all arrays of rank 4, or None: what their shapes say.
        may_be_nchw: whether shapes may say that channels come first; else they come last.

    Returns:
        The arrays in the order (N, height, width, channels); shapes are not checked otherwise.

    Raises:
        InputError: if a shape fits both orders and ``layout`` does not decide.
    """
    by_name = {info.name: info for info in infos}
    result = {}
    for name, array in arrays.items():
        is_map = array.ndim == 4 and not by_name[name].has_own_axes
        moves = is_map and layout == "nchw"
        if is_map and layout is None and may_be_nchw:
            moves = _is_nchw(name, array, by_name[name].shape)
        result[name] = np.moveaxis(array, 1, 3) if moves else array
    return result


def _is_nchw(name: str, array: Array, shape: tuple[int, int, int]) -> bool:
    height, width, channels = shape
    first = array.shape[1:] == (channels, height, width)
    last = array.shape[1:] == shape
    if first and last and array.shape[1:] != (1, 1, 1):
        raise InputError(
            "its shape fits channels first and channels last",
            where=f"input '{name}'",
            got=array.shape,
            hint="say which it is: layout='nchw' or 'nhwc', on the command line --layout",
        )
    return first and not last
