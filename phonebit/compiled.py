"""The compiled runtime."""

from __future__ import annotations

import ctypes
from functools import cache
from types import ModuleType

from phonebit.errors import DeviceError


def load_runtime() -> ModuleType:
    """Import the compiled module.

    Returns:
        phonebit._runtime.

    Raises:
        DeviceError: if it is not there or cannot be loaded, or this is a subinterpreter.
    """
    if _is_subinterpreter():
        raise DeviceError(
            "PhoneBit computes in Python's main interpreter only, and this is a subinterpreter",
            hint="use a process of its own (mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
        )
    try:
        from phonebit import _runtime
    except ImportError as error:
        raise DeviceError(
            f"the compiled runtime cannot be loaded: {error}",
            where="phonebit._runtime",
            hint="install phonebit with `pip install .` from its source folder",
        ) from error
    return _runtime


@cache
def _is_subinterpreter() -> bool:
    """There the import would wait for ever: it asks for the global lock as the main one."""
    api = ctypes.pythonapi
    present, main = api.PyInterpreterState_Get, api.PyInterpreterState_Main
    present.restype = main.restype = ctypes.c_void_p
    return bool(present() != main())
