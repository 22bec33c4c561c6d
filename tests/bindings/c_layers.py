"""The layers of phonebit/phonebit_layers_c.h by ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_size_t, c_uint32
from pathlib import Path
from typing import Any

import numpy as np
from c_library import Handle, Sized, c_library
from numpy.typing import ArrayLike, NDArray

U8, F32 = 1, 2
SIGNS = 1


class LayerError(Exception):
    """What phonebit_last_error said."""


class Numbers(ctypes.Structure):
    """phonebit_floats and phonebit_words."""

    _fields_ = (("data", ctypes.c_void_p), ("count", c_size_t))


class Norm(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("arithmetic", c_int32), ("gamma", Numbers), ("beta", Numbers),
        ("mean", Numbers), ("variance", Numbers), ("epsilon", c_float),
    )  # fmt: skip


class Epilogue(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("output", c_int32), ("scale", Numbers), ("bias", Numbers),
        ("norm", POINTER(Norm)), ("added", c_int32), ("activation", c_int32), ("slopes", Numbers),
    )  # fmt: skip


class Window(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("kernel_height", c_int32), ("kernel_width", c_int32),
        ("stride_height", c_int32), ("stride_width", c_int32), ("dilation_height", c_int32),
        ("dilation_width", c_int32), ("pad_top", c_int32), ("pad_left", c_int32),
        ("pad_bottom", c_int32), ("pad_right", c_int32),
    )  # fmt: skip


class Weights(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("is_binary", c_int32), ("values", Numbers), ("packed", Numbers),
    )  # fmt: skip


class Conv2d(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("out_channels", c_int32), ("name", c_char_p),
        ("window", POINTER(Window)), ("weights", POINTER(Weights)), ("epilogue", POINTER(Epilogue)),
        ("groups", c_int32), ("pad_value", c_int32), ("input_mul", c_int32), ("input_add", c_int32),
    )  # fmt: skip


class Dense(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("out_channels", c_int32), ("name", c_char_p),
        ("weights", POINTER(Weights)), ("epilogue", POINTER(Epilogue)),
        ("input_mul", c_int32), ("input_add", c_int32),
    )  # fmt: skip


class Pool(Sized):
    _fields_ = (
        ("struct_size", c_uint32), ("name", c_char_p), ("window", POINTER(Window)),
        ("gamma", Numbers),
    )  # fmt: skip


_LAYER = (Handle, c_int32)
_FUNCTIONS = {
    "create": (c_char_p, POINTER(Handle)),
    "input": (Handle, c_char_p, c_int32, c_int32, c_int32, c_int32, POINTER(c_int32)),
    "conv2d": (*_LAYER, POINTER(Conv2d), POINTER(c_int32)),
    "dense": (*_LAYER, POINTER(Dense), POINTER(c_int32)),
    "max_pool": (*_LAYER, POINTER(Pool), POINTER(c_int32)),
    "average_pool": (*_LAYER, POINTER(Pool), POINTER(c_int32)),
    "pointwise": (*_LAYER, c_char_p, POINTER(Epilogue), POINTER(c_int32)),
    "softmax": (*_LAYER, c_char_p, POINTER(c_int32)),
    "output": _LAYER,
    "save": (Handle, c_char_p),
}


class Layers:
    """A phonebit_builder; tensors are numbers. Arrays stay with it, so that pointers live."""

    def __init__(self, name: str = "layers") -> None:
        self.library = c_library()
        for function, arguments in _FUNCTIONS.items():
            entry = getattr(self.library, f"phonebit_builder_{function}")
            entry.argtypes, entry.restype = arguments, c_int32
        self.library.phonebit_builder_destroy.argtypes = (Handle,)
        self.library.phonebit_builder_destroy.restype = None
        self.handle = Handle()
        self.arrays: list[NDArray[Any]] = []
        self._check("create", name.encode(), byref(self.handle))

    def __enter__(self) -> Layers:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.phonebit_builder_destroy(self.handle)

    def input(self, kind: int, shape: tuple[int, int, int], name: str = "x") -> int:
        return self._tensor("input", self.handle, name.encode(), kind, *shape)

    def conv2d(self, value: int, out_channels: int, **fields: Any) -> int:
        layer = _filled(Conv2d(), out_channels=out_channels, **fields)
        return self._tensor("conv2d", self.handle, value, byref(layer))

    def dense(self, value: int, out_channels: int, **fields: Any) -> int:
        layer = _filled(Dense(), out_channels=out_channels, **fields)
        return self._tensor("dense", self.handle, value, byref(layer))

    def pool(self, kind: str, value: int, window: Window, gamma: ArrayLike | None = None) -> int:
        layer = _filled(Pool(), window=window, gamma=self.floats(gamma))
        return self._tensor(kind, self.handle, value, byref(layer))

    def pointwise(self, value: int, epilogue: Epilogue) -> int:
        return self._tensor("pointwise", self.handle, value, None, byref(epilogue))

    def softmax(self, value: int) -> int:
        return self._tensor("softmax", self.handle, value, None)

    def output(self, value: int) -> None:
        self._check("output", self.handle, value)

    def save(self, path: Path) -> Path:
        self._check("save", self.handle, str(path).encode())
        return path

    def floats(self, values: ArrayLike | None) -> Numbers:
        return Numbers() if values is None else self._numbers(np.ascontiguousarray(values, "<f4"))

    def signs(self, values: ArrayLike) -> Weights:
        return _filled(Weights(), is_binary=1, values=self.floats(values))

    def packed(self, words: NDArray[np.uint32]) -> Weights:
        return _filled(Weights(), is_binary=1, packed=self._numbers(np.ascontiguousarray(words)))

    def weights(self, values: ArrayLike) -> Weights:
        return _filled(Weights(), values=self.floats(values))

    def norm(self, epsilon: float, arithmetic: int = 0, **arrays: ArrayLike) -> Norm:
        given = {name: self.floats(values) for name, values in arrays.items()}
        return _filled(Norm(), epsilon=epsilon, arithmetic=arithmetic, **given)

    def epilogue(self, norm: Norm | None = None, **fields: Any) -> Epilogue:
        arrays = {"scale", "bias", "slopes"} & fields.keys()
        given = {name: self.floats(fields.pop(name)) for name in arrays}
        return _filled(Epilogue(), **given, **fields, **({} if norm is None else {"norm": norm}))

    def _numbers(self, array: NDArray[Any]) -> Numbers:
        self.arrays.append(array)
        return Numbers(array.ctypes.data, array.size)

    def _tensor(self, function: str, *arguments: Any) -> int:
        number = c_int32()
        self._check(function, *arguments, byref(number))
        return number.value

    def _check(self, function: str, *arguments: Any) -> None:
        if getattr(self.library, f"phonebit_builder_{function}")(*arguments) != 0:
            raise LayerError(self.library.phonebit_last_error().decode())


def window(
    kernel: int, stride: int = 1, dilation: int = 1, pads: tuple[int, ...] = (0,) * 4
) -> Window:
    """A square window; pads are (top, left, bottom, right)."""
    return _filled(
        Window(), kernel_height=kernel, kernel_width=kernel, stride_height=stride,
        stride_width=stride, dilation_height=dilation, dilation_width=dilation,
        **dict(zip(("pad_top", "pad_left", "pad_bottom", "pad_right"), pads, strict=True)),
    )  # fmt: skip


def _filled(structure: Any, **fields: Any) -> Any:
    """Sets fields; structures go where a pointer is expected, and stay alive with it."""
    for name, value in fields.items():
        pointed = isinstance(value, Norm | Epilogue | Window | Weights)
        setattr(structure, name, ctypes.pointer(value) if pointed else value)
    return structure
