"""phonebit.Network as a binding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from binding_types import Array, Arrays, BindingError, Facts, Layer, Levels, Tensor

from phonebit import DeviceError, InputError, ModelFormatError, Network, Preprocessing
from phonebit.errors import CancelledError
from phonebit.layer_info import TensorInfo

KINDS = {
    ModelFormatError: "format", InputError: "input", DeviceError: "device",
    CancelledError: "cancelled",
}  # fmt: skip


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except tuple(KINDS) as error:
        raise BindingError(KINDS[type(error)], str(error)) from error


class PythonNetwork:
    """A network loaded by ``phonebit.Network.load``; its cache folder is PHONEBIT_CACHE_DIR."""

    def __init__(self, file: Path, device: str, threads: int) -> None:
        with _errors():
            self._network = Network.load(file, device=device, threads=threads)

    @property
    def facts(self) -> Facts:
        network = self._network
        return Facts(
            tuple(map(_tensor, network.inputs)),
            tuple(map(_tensor, network.outputs)),
            tuple(
                Layer(
                    layer.name, layer.kind, layer.kernel, layer.macs, layer.binary,
                    layer.weight_bytes,
                )
                for layer in network.layers
            ),
            tuple(network.labels),
            network.memory,
            network.metadata,
            network.device,
            network.threads,
            network.plan_key,
        )  # fmt: skip

    def forward(self, inputs: Arrays) -> dict[str, Array]:
        with _errors():
            named = self._network.forward(dict(inputs))
        return {
            info.name: np.asarray(named[info.name]).reshape(-1, *info.shape)
            for info in self._network.outputs
        }

    def profile(self, inputs: Arrays) -> list[float]:
        with _errors():
            return [layer.latency_ms for layer in self._network.profile(dict(inputs), repeats=1)]

    @property
    def rule(self) -> Preprocessing | None:
        return self._network.preprocessing.get(self._network.inputs[0].name)

    def prepare_image(self, levels: Levels, rule: Preprocessing | None) -> Array:
        [info, *_others] = self._network.inputs
        rule = rule or self._network.preprocessing[info.name]
        with _errors():
            return rule.apply(levels, info)

    def cancel(self) -> None:
        self._network.cancel()


def _tensor(info: TensorInfo) -> Tensor:
    return Tensor(info.name, info.dtype, info.shape)
