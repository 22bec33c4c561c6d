"""A loaded network: the Python face of the C++ runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.device import isa_of, load_runtime
from phonebit.errors import InputError
from phonebit.input_checks import check_inputs
from phonebit.layer_info import (
    LayerInfo,
    LayerProfile,
    TensorInfo,
    binary_mac_share,
    layer_table,
    make_profiles,
    shape_text,
)

if TYPE_CHECKING:
    from phonebit import _runtime

Array = NDArray[Any]
MAX_THREADS = 1024


class Network:
    """A ``.pbit`` file, loaded and ready to run.

    Its weights are read from the file once, at load; a forward pass allocates only its results. One
    object may be used from several threads: calls on it take turns, the interpreter lock is
    released while they compute. Threads that should run at the same time each load their own.

    Example::

        network = Network.load("model.pbit")
        scores = network.forward(pictures)  # (N, classes)
    """

    def __init__(self, engine: _runtime.Network, path: Path) -> None:
        """Wrap a runtime object; use ``Network.load`` instead."""
        self._engine = engine
        self._path = path
        self._inputs = tuple(_tensor_info(tensor) for tensor in engine.inputs)
        self._outputs = tuple(_tensor_info(tensor) for tensor in engine.outputs)
        self._layers = tuple(_layer_info(layer) for layer in engine.layers)
        self._metadata = _parse_metadata(engine.metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto", threads: int = 0) -> Network:
        """Load a ``.pbit`` file.

        Args:
            path: the file; it must stay unchanged while the network is in use.
            device: "auto" or "cpu": the best instruction set of this machine (or the one that the
                environment variable PHONEBIT_CPU names); "cpu:avx2" and the like: that one.
            threads: CPU threads that a forward pass uses; 0: as many as the process may use.

        Returns:
            The network.

        Raises:
            ModelFormatError: if the file is not a sound ``.pbit`` file.
            OSError: if the file cannot be read.
            DeviceError: if this machine or this version does not have the device.
            InputError: if ``threads`` is out of range.
        """
        isa = isa_of(device)
        if not 0 <= threads <= MAX_THREADS:
            raise InputError(
                "number of threads out of range",
                where="threads",
                expected=f"0 (all cores) to {MAX_THREADS}",
                got=threads,
            )
        path = Path(path)
        with path.open("rb"):  # the operating system's own error if it is absent or a directory
            pass
        return cls(load_runtime().Network(str(path), threads=threads, isa=isa), path)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What ``forward`` takes, in order."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What ``forward`` returns, in order."""
        return self._outputs

    @property
    def layers(self) -> tuple[LayerInfo, ...]:
        """The ops in execution order."""
        return self._layers

    @property
    def path(self) -> Path:
        """The file that was loaded."""
        return self._path

    @property
    def isa(self) -> str:
        """Instruction set that serves this network, e.g. "avx512"."""
        return self._engine.isa

    @property
    def threads(self) -> int:
        """CPU threads that a forward pass uses."""
        return self._engine.threads

    @property
    def memory(self) -> dict[str, int]:
        """Memory in bytes.

        ``arena_bytes`` (intermediate tensors of one input), ``lower_bound_bytes`` (the least that
        any plan of them needs), ``scratch_bytes``, ``weight_bytes`` (re-packed), ``file_bytes``.
        """
        return dict(self._engine.memory)

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's JSON metadata: producer, labels, preprocessing. Never affects the results."""
        return self._metadata

    @property
    def labels(self) -> list[str]:
        """Class names, or an empty list."""
        labels = self._metadata.get("labels")
        return [str(label) for label in labels] if isinstance(labels, list) else []

    @property
    def level_meaning(self) -> tuple[float, float] | None:
        """(scale, offset), if the file tells: a picture level u stands for u * scale + offset."""
        meaning = self._metadata.get("input")
        if not isinstance(meaning, dict):
            return None
        scale, offset = meaning.get("scale"), meaning.get("offset")
        if not isinstance(scale, int | float) or not isinstance(offset, int | float):
            return None
        return float(scale), float(offset)

    def forward(self, x: Array | Mapping[str, Array]) -> Array | dict[str, Array]:
        """Run the network on a batch.

        Args:
            x: (N, height, width, channels), N >= 1, of the dtype that ``inputs`` says (uint8 or
                float32); (N, C) will do where height and width are 1. A dict from input name to
                array if there are several inputs.

        Returns:
            float32 (N, height, width, channels), or int8 of -1 and +1 for a "bit" output; (N, C)
            where height and width are 1. A dict by output name if there are several outputs.

        Raises:
            InputError: if an array's dtype, shape, batch or values are not acceptable.
        """
        results = self._engine.forward(check_inputs(x, self._inputs))
        arrays = {
            info.name: _without_map(result, info)
            for info, result in zip(self._outputs, results, strict=True)
        }
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays

    def activations(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Run the network and keep every intermediate tensor, for debugging.

        Args:
            x: as for ``forward``.

        Returns:
            Arrays (N, height, width, channels) by tensor name: float32, uint8, or int8 of -1, +1.

        Raises:
            InputError: as for ``forward``.
        """
        return dict(self._engine.activations(check_inputs(x, self._inputs)))

    def profile(self, x: Array | Mapping[str, Array], repeats: int = 10) -> list[LayerProfile]:
        """Measure each layer on a batch.

        Args:
            x: as for ``forward``.
            repeats: runs to take the median of, at least 1.

        Returns:
            One entry a layer, in execution order.

        Raises:
            InputError: as for ``forward``, or if ``repeats`` is below 1.
        """
        if repeats < 1:
            raise InputError("too few", where="repeats", expected="at least 1", got=repeats)
        arrays = check_inputs(x, self._inputs)
        return make_profiles(self._layers, self._engine.profile(arrays, repeats), len(arrays[0]))

    def run_layer(self, index: int, operands: list[Array]) -> dict[str, Array]:
        """Run one layer alone, on given operands; ``phonebit verify`` is built on this.

        Args:
            index: place of the layer in ``layers``.
            operands: arrays (N, height, width, channels) in the order of the layer's ``inputs``:
                float32, uint8, or int8 of -1 and +1.

        Returns:
            Its outputs by tensor name.

        Raises:
            InputError: if ``index`` or an operand does not fit the layer.
        """
        if not 0 <= index < len(self._layers):
            raise InputError(
                "no such layer", where="index", expected=f"0..{len(self._layers) - 1}", got=index
            )
        return dict(self._engine.run_op(index, [np.ascontiguousarray(x) for x in operands]))

    def summary(self) -> str:
        """Text table of the layers, with totals below it."""
        memory = self.memory
        return "\n".join(
            [
                *(f"in   {_tensor_text(info)}" for info in self._inputs),
                *(f"out  {_tensor_text(info)}" for info in self._outputs),
                "",
                layer_table(self._layers),
                "",
                f"{sum(layer.macs for layer in self._layers):,} MACs, "
                f"{100 * binary_mac_share(self._layers):.1f} % binary; "
                f"file {memory['file_bytes']:,} bytes, arena {memory['arena_bytes']:,} bytes",
            ]
        )

    def __repr__(self) -> str:
        """One line: file, inputs, outputs, what serves it."""
        inputs = ", ".join(map(_tensor_text, self._inputs))
        outputs = ", ".join(map(_tensor_text, self._outputs))
        return (
            f"Network('{self._path}', {inputs} -> {outputs}, {len(self._layers)} layers, "
            f"cpu:{self.isa}, threads={self.threads})"
        )


def _tensor_info(tensor: _runtime.TensorInfo) -> TensorInfo:
    height, width, channels = tensor.shape
    return TensorInfo(tensor.name, tensor.dtype, (height, width, channels))


def _layer_info(layer: _runtime.LayerInfo) -> LayerInfo:
    return LayerInfo(
        layer.name,
        layer.kind,
        layer.kernel,
        layer.macs,
        layer.binary,
        layer.weight_bytes,
        tuple(layer.inputs),
        tuple(layer.outputs),
    )


def _tensor_text(info: TensorInfo) -> str:
    return f"{info.name} {info.dtype} {shape_text(info.shape)}"


def _parse_metadata(text: str) -> dict[str, Any]:
    """Metadata is optional and never trusted: what is not a JSON object counts as absent."""
    try:
        metadata = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def _without_map(array: Array, info: TensorInfo) -> Array:
    height, width, channels = info.shape
    return array.reshape(len(array), channels) if height == width == 1 else np.asarray(array)
