"""The C interface as a binding."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from binding_types import Array, Arrays, BindingError, Facts, Layer, Levels, Tensor
from c_library import (
    Buffer,
    Handle,
    LayerInfo,
    MemoryInfo,
    Picture,
    PreprocessingRule,
    TensorInfo,
    c_library,
)

from phonebit import Preprocessing
from phonebit.format.bits import unpack_signs, words_per_row
from phonebit.images.preprocessing import ColorOrder
from phonebit.layer_info import TensorDtype
from phonebit.layer_info import TensorInfo as TensorDescription

DTYPES = ("bit", "u8", "f32")
IMAGE_FORMATS = {1: 0, 3: 1, 4: 2}
"""Gray, RGB, RGBA by channels."""


class CNetwork:
    """A network loaded by ``phonebit_network_load_path``."""

    def __init__(
        self, file: Path, device: str, threads: int, cache: Path, levels: bool = False
    ) -> None:
        self._library = c_library()
        self._handle = Handle()
        options = Handle()
        self._call("options_create", ctypes.byref(options))
        try:
            self._call("options_set_device", options, device.encode())
            self._call("options_set_threads", options, threads)
            self._call("options_set_cache_directory", options, str(cache).encode())
            self._call("options_set_levels", options, int(levels))
            name = str(file).encode()
            self._call("network_load_path", name, options, ctypes.byref(self._handle))
        finally:
            self._library.phonebit_options_destroy(options)

    def __del__(self) -> None:
        self._library.phonebit_network_destroy(self._handle)

    @property
    def facts(self) -> Facts:
        memory = self._get("memory", MemoryInfo())
        layers = [self._get("layer_get", LayerInfo(), i) for i in range(self._count("layer"))]
        return Facts(
            self._tensors("input"),
            self._tensors("output"),
            tuple(
                Layer(
                    layer.name.decode(), layer.kind.decode(), layer.kernel.decode(), layer.macs,
                    bool(layer.is_binary), layer.weight_bytes,
                )
                for layer in layers
            ),
            tuple(self._text("label_get", i) for i in range(self._count("label"))),
            {name: getattr(memory, name) for name, _ in MemoryInfo._fields_[1:]},
            json.loads(self._text("metadata") or "{}"),
            self._text("device"),
            self._get("threads", ctypes.c_int32()).value,
            self._text("plan_key"),
        )  # fmt: skip

    def forward(self, inputs: Arrays) -> dict[str, Array]:
        batch, given = self._inputs(inputs)
        results = self.result_memory(batch)
        outputs = _buffers(results)
        self._call_network("forward", given, len(given), outputs, len(outputs), batch)
        return {
            tensor.name: unpack_signs(result, tensor.shape[2]) if tensor.dtype == "bit" else result
            for tensor, result in zip(self._tensors("output"), results, strict=True)
        }

    def profile(self, inputs: Arrays) -> list[float]:
        batch, given = self._inputs(inputs)
        times = (ctypes.c_double * self._count("layer"))()
        self._call_network("profile", given, len(given), batch, 1, times, len(times))
        return list(times)

    @property
    def rule(self) -> Preprocessing | None:
        found = self._get("preprocessing", PreprocessingRule(), 0)
        if found.color_order == ColorOrder.NONE:
            return None
        record = {name: getattr(found, name) for name, _ in PreprocessingRule._fields_[1:]}
        return Preprocessing.from_record(record, self._tensors("input")[0].shape[2])

    def prepare_image(self, levels: Levels, rule: Preprocessing | None) -> Array:
        [tensor, *_others] = self._tensors("input")
        source = Picture()
        source.height, source.width = levels.shape[:2]
        source.format = IMAGE_FORMATS[1 if levels.ndim == 2 else levels.shape[2]]
        plane = np.ascontiguousarray(levels)
        source.planes[0] = plane.ctypes.data
        given = None if rule is None else ctypes.byref(_rule(rule, tensor))
        image = np.empty(tensor.shape, np.uint8 if tensor.dtype == "u8" else np.float32)
        self._call_network(
            "prepare_picture", 0, ctypes.byref(source), given,
            image.ctypes.data, image.nbytes,
        )  # fmt: skip
        return image

    def cancel(self) -> None:
        self._call_network("cancel")

    def result_memory(self, batch: int) -> list[Array]:
        """Arrays as the outputs' buffers are laid out: bits in words."""
        results = []
        for tensor in self._tensors("output"):
            height, width, channels = tensor.shape
            is_bits = tensor.dtype == "bit"
            last = words_per_row(channels) if is_bits else channels
            dtype = {"bit": np.uint32, "u8": np.uint8, "f32": np.float32}[tensor.dtype]
            results.append(np.empty((batch, height, width, last), dtype))
        return results

    def forward_buffers(self, inputs: list[Array], outputs: list[Array], batch: int) -> None:
        """An inference on any buffers, wrong ones too."""
        given, wanted = _buffers(inputs), _buffers(outputs)
        self._call_network("forward", given, len(given), wanted, len(wanted), batch)

    def _inputs(self, inputs: Arrays) -> tuple[int, Any]:
        arrays = [np.ascontiguousarray(inputs[tensor.name]) for tensor in self._tensors("input")]
        return len(arrays[0]), _buffers(arrays)

    def _tensors(self, role: str) -> tuple[Tensor, ...]:
        infos = [self._get(f"{role}_get", TensorInfo(), i) for i in range(self._count(role))]
        return tuple(
            Tensor(info.name.decode(), DTYPES[info.type], (info.height, info.width, info.channels))
            for info in infos
        )

    def _count(self, what: str) -> int:
        return int(self._get(f"{what}_count", ctypes.c_int32()).value)

    def _text(self, what: str, *index: int) -> str:
        return str(self._get(what, ctypes.c_char_p(), *index).value.decode())

    def _get(self, what: str, result: Any, *index: int) -> Any:
        self._call_network(what, *index, ctypes.byref(result))
        return result

    def _call_network(self, name: str, *arguments: Any) -> None:
        self._call(f"network_{name}", self._handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"phonebit_{name}")(*arguments)
        if status != 0:
            kind = self._library.phonebit_status_name(status).decode()
            raise BindingError(kind, self._library.phonebit_last_error().decode())


def _buffers(arrays: list[Array]) -> Any:
    """The arrays must outlive the result."""
    buffers = [Buffer(array.ctypes.data, array.nbytes) for array in arrays]
    return (Buffer * len(arrays))(*buffers)


def _rule(rule: Preprocessing, tensor: Tensor) -> PreprocessingRule:
    """As the file would have it."""
    info = TensorDescription(tensor.name, cast(TensorDtype, tensor.dtype), tensor.shape)
    channels = tensor.shape[2]
    record = rule.for_input(info).to_record(0, channels)
    result = PreprocessingRule()
    for name in ("color_order", "resize", "resize_to", "fill_level", "interpolation"):
        setattr(result, name, int(record[name]))
    result.low, result.high = float(record["low"]), float(record["high"])
    result.mean[:], result.deviation[:] = list(record["mean"]), list(record["deviation"])
    return result
