"""Opening a file with the compiled runtime: device, stored tuning, cache folder, warnings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from phonebit.device import load_runtime
from phonebit.errors import DeviceError, InputError, PhoneBitWarning
from phonebit.target import Target, find_target
from phonebit.tuning_store import cache_folder, stored_tuning, tuning_file

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.target import DeviceLike

Precision = Literal["exact", "f16"]
PRECISIONS: tuple[Precision, ...] = ("exact", "f16")
MAX_THREADS = 1024


def open_engine(
    path: Path, device: DeviceLike, threads: int, precision: Precision, stacklevel: int = 3
) -> _runtime.Network:
    """Load a file into the runtime; see ``Network.load``.

    Args:
        path: the file.
        device: where it shall run.
        threads: CPU threads.
        precision: "exact" or "f16".
        stacklevel: whose line warnings name, counted from this function.

    Returns:
        The runtime's object.

    Raises:
        ModelFormatError: if the file is not sound.
        OSError: if it cannot be read.
        DeviceError: if the device is absent or cannot run the network.
        InputError: if ``threads`` or ``precision`` is out of range.
    """
    if not 0 <= threads <= MAX_THREADS:
        raise InputError(
            "number of threads out of range",
            where="threads",
            expected=f"0 (all cores) to {MAX_THREADS}",
            got=threads,
        )
    if precision not in PRECISIONS:
        raise InputError(
            "unknown precision",
            where="precision",
            expected=" or ".join(map(repr, PRECISIONS)),
            got=repr(precision),
        )
    target = find_target(device)
    with path.open("rb"):  # the operating system's own error if it is absent or a directory
        pass
    notes: list[str] = []
    try:
        engine = _open(path, target, threads, precision, notes)
    except DeviceError as error:
        if device != "auto" or not target.is_opencl:
            raise
        notes.append(f"the CPU serves, since {target.device} cannot: {error}")
        engine = _open(path, Target("cpu"), threads, precision, notes)
    for note in [*notes, *engine.warnings]:
        warnings.warn(note, PhoneBitWarning, stacklevel=stacklevel)
    return engine


def _open(
    path: Path, target: Target, threads: int, precision: Precision, notes: list[str]
) -> _runtime.Network:
    def construct(tuning: str) -> _runtime.Network:
        engine: _runtime.Network = load_runtime().Network(
            str(path),
            threads=threads,
            isa=target.isa,
            device=target.device,
            precision=precision,
            tuning=tuning,
            cache_directory=str(cache_folder() or ""),
        )
        return engine

    tuning = stored_tuning(target.key) if target.is_opencl else ""
    if not tuning:
        return construct("")
    try:
        return construct(tuning)
    except InputError as error:  # a damaged entry, or one of another version of the kernels
        engine = construct("")
        notes.append(
            f"stored tuning is ignored: {error}; "
            f"run `phonebit tune` again, or delete {tuning_file(target.key)}"
        )
        return engine
