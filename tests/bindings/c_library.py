"""libphonebit.so by ctypes: structures and functions of phonebit/phonebit_c.h."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from functools import cache
from pathlib import Path

import pytest

DEFAULT = Path(__file__).parents[2] / "build" / "runtime" / "c_api" / "libphonebit.so"
VARIABLE = "PHONEBIT_LIBRARY"
API_VERSION = 1

Handle = ctypes.c_void_p


class Sized(ctypes.Structure):
    """A structure that begins with its size."""

    def __init__(self) -> None:
        super().__init__()
        self.struct_size = ctypes.sizeof(self)


class TensorInfo(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("type", c_int32), ("name", c_char_p),
        ("height", c_int32), ("width", c_int32), ("channels", c_int32), ("bytes", c_uint64),
    )  # fmt: skip


class LayerInfo(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("is_binary", c_int32), ("name", c_char_p), ("kind", c_char_p),
        ("kernel", c_char_p), ("macs", c_int64), ("weight_bytes", c_uint64),
    )  # fmt: skip


class MemoryInfo(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("arena_bytes", c_uint64), ("lower_bound_bytes", c_uint64),
        ("scratch_bytes", c_uint64), ("weight_bytes", c_uint64), ("file_bytes", c_uint64),
    )  # fmt: skip


class PreprocessingRule(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("color_order", c_int32), ("resize", c_int32),
        ("resize_to", c_int32), ("fill_level", c_int32), ("interpolation", c_int32),
        ("low", c_double), ("high", c_double), ("mean", c_double * 4), ("deviation", c_double * 4),
    )  # fmt: skip


class Picture(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("format", c_int32), ("width", c_int32), ("height", c_int32),
        ("planes", ctypes.c_void_p * 3), ("row_bytes", c_int32 * 3), ("pixel_bytes", c_int32 * 3),
        ("crop_left", c_int32), ("crop_top", c_int32), ("crop_width", c_int32),
        ("crop_height", c_int32), ("rotation", c_int32), ("is_mirrored", c_int32),
        ("yuv", c_int32),
    )  # fmt: skip


class Buffer(ctypes.Structure):
    """phonebit_input and phonebit_output."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", c_size_t))


_BUFFERS = (Handle, POINTER(Buffer), c_int32)
_COUNT = (Handle, POINTER(c_int32))
_TEXT = (Handle, POINTER(c_char_p))
_FUNCTIONS = {
    "options_create": (POINTER(Handle),),
    "options_set_device": (Handle, c_char_p),
    "options_set_threads": (Handle, c_int32),
    "options_set_cache_directory": (Handle, c_char_p),
    "options_set_levels": (Handle, c_int32),
    "options_set_profiling": (Handle, c_int32),
    "use_opencl_library": (c_char_p,),
    "network_load_path": (c_char_p, Handle, POINTER(Handle)),
    "network_input_count": _COUNT,
    "network_input_get": (Handle, c_int32, POINTER(TensorInfo)),
    "network_output_count": _COUNT,
    "network_output_get": (Handle, c_int32, POINTER(TensorInfo)),
    "network_layer_count": _COUNT,
    "network_layer_get": (Handle, c_int32, POINTER(LayerInfo)),
    "network_label_count": _COUNT,
    "network_label_get": (Handle, c_int32, POINTER(c_char_p)),
    "network_memory": (Handle, POINTER(MemoryInfo)),
    "network_metadata": _TEXT,
    "network_device": _TEXT,
    "network_plan_key": _TEXT,
    "network_threads": _COUNT,
    "network_forward": (*_BUFFERS, POINTER(Buffer), c_int32, c_int32),
    "network_profile": (*_BUFFERS, c_int32, c_int32, POINTER(c_double), c_int32),
    "network_last_profile": (Handle, POINTER(c_double), c_int32),
    "network_cancel": (Handle,),
    "network_preprocessing": (Handle, c_int32, POINTER(PreprocessingRule)),
    "network_prepare_picture": (
        Handle, c_int32, POINTER(Picture), POINTER(PreprocessingRule), ctypes.c_void_p, c_size_t,
    ),
}  # fmt: skip
"""Those that give a status, by their arguments."""


@cache
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, f"phonebit_{name}")
        function.argtypes, function.restype = arguments, c_int32
    for name in ("options_destroy", "network_destroy"):
        function = getattr(library, f"phonebit_{name}")
        function.argtypes, function.restype = (Handle,), None
    for name, arguments in (("last_error", ()), ("version", ()), ("status_name", (c_int32,))):
        function = getattr(library, f"phonebit_{name}")
        function.argtypes, function.restype = arguments, c_char_p
    assert library.phonebit_c_api_version() >= API_VERSION
    return library


def c_library() -> ctypes.CDLL:
    """The library under test; skips where it is not built."""
    path = Path(os.environ.get(VARIABLE) or DEFAULT)
    if not path.is_file():
        pytest.skip(f"no {path}: build target phonebit, or name the library in {VARIABLE}")
    return _load(path.resolve())
