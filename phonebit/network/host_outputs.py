"""Results of an inference as NumPy arrays: their form, and arrays that a user gives for them."""

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
        results: (N, height, width, channels), one per output.
        outputs: the network's outputs.
        out: what the user wants them written into: an array, a mapping by output name, or None.

    Returns:
        Arrays (N, *array_shape) by output name; those of ``out`` if given.

    Raises:
        InputError: if an array of ``out`` does not fit.
    """
    arrays = {
        info.name: np.asarray(result).reshape(len(result), *info.array_shape)
        for info, result in zip(outputs, results, strict=True)
    }
    if out is None:
        return arrays
    targets = dict(arrays_by_name(out, outputs, "output"))
    for info in outputs:
        _check_target(targets[info.name], arrays[info.name], info)
    for name, array in arrays.items():
        np.copyto(targets[name], array.reshape(targets[name].shape))
    return targets


def in_form_of(x: Any, results: Any) -> Any:
    """Results by name where the inputs came by name or there are several, else the one array."""
    is_named = isinstance(x, Mapping) or len(results) > 1
    return results if is_named else next(iter(results.values()))


def _check_target(target: Any, array: Array, info: TensorInfo) -> None:
    where = f"output '{info.name}'"
    if not isinstance(target, np.ndarray):
        raise InputError(
            "not a NumPy array, as the inputs are",
            where=where,
            expected=f"an array of {array.dtype.name}",
            got=type(target).__name__,
        )
    shapes = {array.shape, (len(array), *info.shape)}
    if target.dtype != array.dtype or target.shape not in shapes:
        raise InputError(
            "does not fit the output",
            where=where,
            expected=f"{array.dtype.name} {array.shape}",
            got=f"{target.dtype.name} {target.shape}",
        )
    if not target.flags.writeable:
        raise InputError("the array is read-only", where=where, hint="pass a copy")
