"""Results of a forward pass as NumPy arrays: their form, and arrays that a user gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo
from phonebit.network.input_checks import Array, arrays_by_name


def named_results(results: Sequence[Array], outputs: Sequence[TensorInfo], out: Any) -> Any:
    """Bring the runtime's results into the form that ``Network.forward`` returns.

    Args:
        results: (N, height, width, channels), one an output.
        outputs: the network's outputs.
        out: what the user wants them written into: an array, a mapping by output name, or None.

    Returns:
        Arrays by output name, (N, C) where height and width are 1; those of ``out`` if given.

    Raises:
        InputError: if an array of ``out`` does not fit.
    """
    arrays = {
        info.name: _without_map(result, info) for info, result in zip(outputs, results, strict=True)
    }
    if out is None:
        return arrays
    targets = dict(arrays_by_name(out, outputs, "output"))
    for name, array in arrays.items():
        _check_target(targets[name], array, name)
    for name, array in arrays.items():
        np.copyto(targets[name], array.reshape(targets[name].shape))
    return targets


def in_form_of(x: Any, results: Any) -> Any:
    """Results by name where the inputs came by name, otherwise the one array."""
    return results if isinstance(x, Mapping) else next(iter(results.values()))


def _without_map(array: Array, info: TensorInfo) -> Array:
    height, width, channels = info.shape
    return array.reshape(len(array), channels) if height == width == 1 else np.asarray(array)


def _check_target(target: Any, array: Array, name: str) -> None:
    where = f"output '{name}'"
    if not isinstance(target, np.ndarray):
        raise InputError(
            "not a NumPy array, as the inputs are",
            where=where,
            expected=f"an array of {array.dtype.name}",
            got=type(target).__name__,
        )
    shapes = (
        {array.shape, (len(array), 1, 1, *array.shape[1:])} if array.ndim == 2 else {array.shape}
    )
    if target.dtype != array.dtype or target.shape not in shapes:
        raise InputError(
            "does not fit the output",
            where=where,
            expected=f"{array.dtype.name} {array.shape}",
            got=f"{target.dtype.name} {target.shape}",
        )
    if not target.flags.writeable:
        raise InputError("the array is read-only", where=where, hint="pass a copy")
