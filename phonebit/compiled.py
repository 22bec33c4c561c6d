"""The compiled runtime."""

from __future__ import annotations

from types import ModuleType

from phonebit.errors import DeviceError


def load_runtime() -> ModuleType:
    """Import the compiled module.

    Returns:
        phonebit._runtime.

    Raises:
        DeviceError: if it is not there or cannot be loaded.
    """
    try:
        from phonebit import _runtime
    except ImportError as error:
        raise DeviceError(
            f"the compiled runtime cannot be loaded: {error}",
            where="phonebit._runtime",
            hint="install phonebit with `pip install .` from its source folder",
        ) from error
    return _runtime
