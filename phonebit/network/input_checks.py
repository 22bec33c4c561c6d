"""Checks of the arrays that go into a network; every refusal says what would be right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.ma import MaskedArray  # at once: a signal's handler may come here
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo

Array = NDArray[Any]


class SupportsDLPack(Protocol):
    """An array that can lend its memory to NumPy: a PyTorch tensor and others."""

    def __dlpack__(self, *, stream: Any = ...) -> Any:
        """Lend it."""


ArrayLike = Array | SupportsDLPack

NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
}
DTYPE_ADVICE = {
    "u8": "pass whole numbers 0..255 with x.astype(np.uint8), in PyTorch x.byte()",
    "f32": "convert it with x.astype(np.float32), in PyTorch x.float()",
}

LEVELS_ADVICE = (
    "convert the model with --input-range or --preprocessing, or normalise the image as in "
    "training and pass float32"
)


def check_inputs(
    x: Any, expected: Sequence[TensorInfo], with_rule: Collection[str] = ()
) -> list[NDArray[Any]]:
    """Bring what a user passed to ``forward`` into the order and layout that the runtime reads.

    Values are not looked at: the runtime does that while it copies them.

    Args:
        x: one array, or a mapping from input name to array; (N, *array_shape), or (N, height,
            width, channels).
        expected: the network's inputs.
        with_rule: names of inputs with a preprocessing rule, which also take levels (uint8).

    Returns:
        C-contiguous arrays of shape (N, height, width, channels), one per input, the same N >= 1.

    Raises:
        InputError: if an input is missing or unknown, or an array has another dtype or shape, or is
            empty.
    """
    arrays = arrays_by_name(x, expected)
    checked = [check_array(arrays[info.name], info, info.name in with_rule) for info in expected]
    check_batches({info.name: len(array) for info, array in zip(expected, checked, strict=True)})
    return checked


def check_finite(arrays: Sequence[NDArray[Any]], expected: Sequence[TensorInfo]) -> None:
    """Check the values of arrays that passed ``check_inputs``.

    Raises:
        InputError: if one holds NaN or infinity.
    """
    for array, info in zip(arrays, expected, strict=True):
        if array.dtype == np.float32:
            _check_finite(array, info)


@contextmanager
def explained(arrays: Sequence[NDArray[Any]], expected: Sequence[TensorInfo]) -> Iterator[None]:
    """Where the runtime refuses arrays for their values, count these and say what to do."""
    try:
        yield
    except InputError:
        check_finite(arrays, expected)
        raise


def check_batches(batches: Mapping[str, int]) -> int:
    """Check that all inputs hold equally many.

    Args:
        batches: how many, by input name.

    Returns:
        That number.

    Raises:
        InputError: if they differ.
    """
    if len(set(batches.values())) > 1:
        raise InputError(
            "the inputs differ in batch size",
            expected="equally many of each",
            got=", ".join(f"{batch} of '{name}'" for name, batch in batches.items()),
        )
    return next(iter(batches.values()))


def arrays_by_name(
    x: Any, expected: Sequence[TensorInfo], what: str = "input"
) -> Mapping[str, Any]:
    """Bring what a user passed into the form of a mapping.

    Args:
        x: one array, or a mapping from name to array.
        expected: the network's inputs or outputs.
        what: "input" or "output", for messages.

    Returns:
        An array for each name.

    Raises:
        InputError: if one is missing or unknown.
    """
    names = [info.name for info in expected]
    listed = ", ".join(f"'{name}'" for name in names)
    if not isinstance(x, Mapping):
        if len(expected) != 1:
            raise InputError(
                f"the network has {len(expected)} {what}s",
                expected=f"a dict with the keys {listed}",
                got=type(x).__name__,
            )
        return {names[0]: x}
    missing = [name for name in names if name not in x]
    unknown = [str(name) for name in x if name not in names]
    if missing or unknown:
        problems = [f"'{name}' is missing" for name in missing]
        problems += [f"'{name}' is not an {what}" for name in unknown]
        raise InputError(
            f"{'; '.join(problems)}",
            where=f"{what}s",
            hint=f"the network's {what}s are {listed}",
        )
    return x


def check_array(array: Any, info: TensorInfo, has_rule: bool = False) -> NDArray[Any]:
    """Check one input array.

    Args:
        array: NumPy's, or one with ``__dlpack__``; (N, *array_shape), or (N, height, width,
            channels).
        info: what the network expects.
        has_rule: whether uint8 will do where it expects float32.

    Returns:
        The same values, C-contiguous, (N, height, width, channels).

    Raises:
        InputError: if dtype or shape is not what the network can take, or values are masked.
    """
    dtype = NUMPY_DTYPES[info.dtype]
    array = as_numpy(array, info)
    if isinstance(array, MaskedArray):
        raise InputError(
            "a masked array has no values where it is masked",
            where=f"input '{info.name}'",
            expected="a plain NumPy array",
            hint="say what these values are with x.filled(value)",
        )
    is_levels = info.dtype == "f32" and array.dtype == np.uint8
    if array.dtype != dtype and not (is_levels and has_rule):
        raise InputError(
            "the file does not say which values the levels of an image stand for"
            if is_levels
            else "wrong element type",
            where=f"input '{info.name}'",
            expected="float32 or uint8" if has_rule and info.dtype == "f32" else dtype.name,
            got=array.dtype,
            hint=LEVELS_ADVICE if is_levels else DTYPE_ADVICE[info.dtype],
        )
    return np.ascontiguousarray(np.asarray(array).reshape(check_shape(array.shape, info)))


def as_numpy(array: Any, info: TensorInfo) -> NDArray[Any]:
    """An array as it is if it is NumPy's, else the memory of another library's, not copied.

    Raises:
        InputError: if it is no array, or NumPy cannot read that memory.
    """
    if isinstance(array, np.ndarray):
        return array
    if not hasattr(array, "__dlpack__"):
        name = NUMPY_DTYPES[info.dtype].name
        raise InputError(
            "not an array",
            where=f"input '{info.name}'",
            expected=f"{name}, of NumPy, PyTorch or another library with DLPack",
            got=type(array).__name__,
            hint=f"make one with np.asarray(x, np.{name})",
        )
    try:
        return np.from_dlpack(array)
    except Exception as error:  # of the other library: what it cannot lend
        raise InputError(
            f"NumPy cannot read it: {error}",
            where=f"input '{info.name}'",
            got=f"{type(array).__module__}.{type(array).__name__}",
            hint="x.detach().cpu() takes it to the CPU and out of automatic differentiation",
        ) from error


def check_shape(shape: tuple[int, ...], info: TensorInfo) -> tuple[int, int, int, int]:
    """Check an input's shape.

    Args:
        shape: of the array: the batch and ``array_shape`` or ``shape``.
        info: what the network expects.

    Returns:
        (N, height, width, channels).

    Raises:
        InputError: if it does not fit, or N is 0.
    """
    height, width, channels = info.shape
    allowed = {info.shape, info.array_shape}
    if height == width == 1:
        allowed.add((channels,))
    if shape[1:] not in allowed:
        own = info.array_shape if len(info.array_shape) > 1 else info.shape
        raise InputError(
            "wrong shape",
            where=f"input '{info.name}'",
            expected=f"(N, {', '.join(map(str, own))})",
            got=shape,
            hint=_shape_advice(shape, info),
        )
    if shape[0] == 0:
        raise InputError(
            "the batch is empty", where=f"input '{info.name}'", hint="pass at least one element"
        )
    return (shape[0], height, width, channels)


def _shape_advice(got: tuple[int, ...], info: TensorInfo) -> str:
    """What most likely went wrong, as an instruction."""
    height, width, channels = info.shape
    if got in {info.shape, info.array_shape}:
        return "add the batch dimension with x[None]"
    if info.has_own_axes:
        return "the axes are those of the network that the file was converted from, batch in front"
    if channels == 1 and got[-2:] == (height, width) and len(got) < 4:
        added = "x[None, :, :, None]" if len(got) == 2 else "x[..., None]"
        return f"add the missing dimensions with {added}"
    if got[-3:] == (channels, height, width):
        moved = "np.moveaxis(x, -3, -1), in PyTorch x.movedim(-3, -1)"
        return f"this looks like channels first: use {moved}, batch in front"
    if len(got) == 4 and got[3] == channels:
        return f"resize to {height}x{width} first (`phonebit run` does so for images)"
    return "the order is batch, height, width, channels"


def _check_finite(array: NDArray[Any], info: TensorInfo) -> None:
    finite = np.isfinite(array)
    if finite.all():
        return
    place = tuple(int(i) for i in np.argwhere(~finite)[0])
    count = int(array.size - np.count_nonzero(finite))
    raise InputError(
        f"{count} of {array.size} values are not finite",
        where=f"input '{info.name}'",
        expected="finite numbers",
        got=f"{array[place]} at {place}",
        hint="find where they come from, or replace them with np.nan_to_num(x)",
    )
