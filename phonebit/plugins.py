"""The library that ONNX Runtime and LiteRT load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from phonebit.compiled import load_runtime
from phonebit.errors import ConversionError, DeviceError, InputError

MAX_THREADS: Final = 1024


def library() -> Path:
    """ONNX Runtime's execution provider and LiteRT's delegate.

    Raises:
        DeviceError: It is not part of this installation.
    """
    home = Path(str(load_runtime().__file__)).parent
    found = next(iter(sorted(home.glob("*phonebit_plugins.*"))), None)
    if found is None:
        raise DeviceError(
            "this installation has no library for ONNX Runtime and LiteRT",
            where=str(home),
            hint="install phonebit again without -DPHONEBIT_PLUGINS=OFF",
        )
    return found


def check_threads(threads: Any) -> None:
    """Refuses what is no number of threads; 0 is one for each processor.

    Raises:
        InputError: It is out of range, or no number.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 0 <= threads <= MAX_THREADS:
        raise InputError("threads", expected=f"0 to {MAX_THREADS}", got=repr(threads))


def check_version(package: str, version: str, oldest: tuple[int, int], hint: str) -> None:
    """Refuses a package that is too old.

    Raises:
        ConversionError: It is.
    """
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
        raise ConversionError(
            f"this version of {package} is too old",
            expected=f"{'.'.join(map(str, oldest))} or later",
            got=version,
            hint=hint,
        )
