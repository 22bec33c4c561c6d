"""Executes a TensorFlow Lite file by Larq Compute Engine's interpreter."""

from __future__ import annotations

import struct
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.tflite.files import Model, Tensor
from phonebit.converter.importers.tflite.reader import WORD_BITS, packed_channels
from phonebit.converter.importers.tflite.rules.as_onnx import TO_BACK, TO_FRONT
from phonebit.converter.importers.torch.program import Program
from phonebit.converter.importers.torch.translation import Translation
from phonebit.converter.importers.torch.value_order import Runner
from phonebit.errors import VerificationError

Array = NDArray[Any]
Kernels = Literal["reference", "default"]


class TFLiteRunner(Runner):
    """A file, executed by Larq Compute Engine.

    Attributes:
        kernels: Its kernels of binary convolutions: "reference", or "default", the fast ones.
    """

    executor = "Larq Compute Engine"

    def __init__(
        self,
        content: bytes,
        model: Model,
        program: Program,
        translation: Translation,
        kernels: Kernels = "reference",
    ) -> None:
        super().__init__(translation)
        self._by_name = {tensor.name: tensor for tensor in model.tensors}
        computed = {place for operator in model.operators for place in operator.outputs}
        places = {model.tensors[place].name: place for place in computed}
        moved = {  # maps that the program computes with their channels in front
            call["self"].name: call.name
            for call in program.calls
            if call.op == "permute" and tuple(call["dims"]) == TO_BACK
        }
        names = {value: name for value, (name, _) in translation.tensors.items()}
        self._wanted = {
            value: (name if name in places else moved[name], name not in places)
            for value, name in names.items()
            if name in places or moved.get(name) in places
        }
        self._names = sorted({name for name, _ in self._wanted.values()})
        self._inputs = [model.tensors[place].name for place in model.inputs]
        self._packed = {
            tensor.name
            for tensor in (model.tensors[place] for place in model.inputs)
            if packed_channels(model, tensor)
        }
        self._interpreter, self.kernels = _interpreter(
            _with_outputs(content, [places[name] for name in self._names]), kernels
        )

    def _tensors(self, feeds: dict[str, Array]) -> dict[str, Array]:
        given = [
            packed(feeds[name]) if name in self._packed else feeds[name] for name in self._inputs
        ]
        results = self._interpreter.interpreter.predict(given)
        computed = dict(zip(self._names, map(np.asarray, results), strict=True))
        tensors = {}
        for value, (name, is_moved) in self._wanted.items():
            indices = self._translation.tensors[value][1].indices
            channels = indices.shape[1 if is_moved else -1]
            array = _numbers(self._by_name[name], computed[name], channels)
            tensors[value] = array.transpose(TO_FRONT) if is_moved else array
        return {**feeds, **tensors}


def packed(array: Array) -> Array:
    """Signs of numbers (..., C) as bits in words of 32, 1 where a number is negative."""
    missing = -array.shape[-1] % WORD_BITS
    bits = np.pad(array < 0, [(0, 0)] * (array.ndim - 1) + [(0, missing)])
    words: Array = np.packbits(bits, -1, bitorder="little").view("<i4")
    return words


def _numbers(tensor: Tensor, array: Array, channels: int) -> Array:
    """What bits and quantized integers stand for."""
    if tensor.is_quantized:
        real: Array = (array.astype(np.float32) - np.float32(tensor.zeros[0])) * tensor.scales[0]
        return real
    if tensor.dtype == "int32":
        octets = np.ascontiguousarray(array, "<i4").view(np.uint8)
        return 1 - 2 * np.unpackbits(octets, -1, bitorder="little")[..., :channels].astype(np.int8)
    return array


def _with_outputs(content: bytes, places: list[int]) -> bytes:
    """The same model with other tensors as outputs: a list of them, put after its other data."""
    import tflite

    table = tflite.Model.GetRootAs(content, 0).Subgraphs(0)._tab
    field = table.Pos + table.Offset(8)  # the field "outputs"
    changed = bytearray(content)
    changed += bytes(-len(changed) % 4)
    struct.pack_into("<I", changed, field, len(changed) - field)
    changed += struct.pack(f"<I{len(places)}i", len(places), *places)
    return bytes(changed)


def _interpreter(content: bytes, kernels: Kernels) -> tuple[Any, Kernels]:
    """The interpreter, and its kernels: the default ones, too, where the others refuse a layer.

    The default ones are wrong on maps that are smaller than a kernel and padded with 0.

    Raises:
        VerificationError: It is not installed.
    """
    missing = [name for name in ("tensorflow", "larq_compute_engine") if find_spec(name) is None]
    if missing:
        raise VerificationError(
            f"{' and '.join(missing)} not installed: pip install larq-compute-engine"
        )
    from larq_compute_engine.tflite.python.interpreter import Interpreter

    if kernels == "reference":
        with suppress(RuntimeError):
            return Interpreter(content, use_reference_bconv=True), "reference"
    return Interpreter(content), "default"
