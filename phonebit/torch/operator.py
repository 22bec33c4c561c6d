"""``torch.ops.phonebit.forward``: a ``.pbit`` file on a batch of CPU tensors.

The file is a tensor, too, so that state, pickles and exported programs have it like any weights.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from phonebit.errors import ModelFormatError
from phonebit.layer_info import TensorInfo
from phonebit.network import Network

DIGEST_BYTES: Final = hashlib.sha256().digest_size
MAX_IDLE: Final = 64
"""Networks that stay loaded between calls; those used longest ago are closed first."""

MAP_AXES: Final = 4
"""Of maps with their batch: (N, C, H, W) here, (N, H, W, C) in a file. All others are the same."""
IMAGE_CHANNELS: Final = 4

Key = tuple[bytes, int]
Array = NDArray[Any]


def network_tensor(content: bytes) -> Any:
    """A file as the operator takes it: uint8, its SHA-256, by which it is known, and its bytes."""
    digest = hashlib.sha256(content).digest()
    return torch.from_numpy(np.frombuffer(digest + content, np.uint8).copy())


class _IdleNetworks:
    """Loaded networks that no call uses, by file and threads: calls at the same time have each one.

    One network serialises its calls, and its threads are fixed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._networks: list[tuple[Key, Network]] = []

    def take(self, key: Key) -> Network | None:
        with self._lock:
            for index in reversed(range(len(self._networks))):
                if self._networks[index][0] == key:
                    return self._networks.pop(index)[1]
        return None

    def give(self, key: Key, network: Network) -> None:
        with self._lock:
            self._networks.append((key, network))
            del self._networks[:-MAX_IDLE]


_idle = _IdleNetworks()


def _load(content: bytes, key: Key) -> Network:
    if hashlib.sha256(content).digest() != key[0]:
        raise ModelFormatError(
            "the network's bytes are damaged",
            where="torch.ops.phonebit.forward",
            hint="load the state that was saved, or accelerate the module again",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.pbit"
        path.write_bytes(content)
        return Network.load(path, "cpu", threads=key[1])


def _forward(inputs: Sequence[Any], network: Any, outputs: Sequence[int]) -> list[Any]:
    """Run a file.

    Args:
        inputs: for each of the file's inputs, in order, batch first: maps (N, C, H, W), others as
            the file has them; float32, uint8, or whole numbers, which are given as floats. Memory
            in the file's order (channels_last of maps, else contiguous) is read as it is.
        network: as ``network_tensor`` makes it.
        outputs: of each output, in order: axes without the batch, then their sizes.

    Returns:
        float32 of these shapes, batch first, in memory of their own; maps in channels_last.
    """
    if not len(inputs[0]):
        return _empty(inputs, network, outputs)
    content = network.numpy()
    key = (content[:DIGEST_BYTES].tobytes(), torch.get_num_threads())
    loaded = _idle.take(key) or _load(content[DIGEST_BYTES:].tobytes(), key)
    infos = loaded.inputs
    arrays = {info.name: _as_in_file(x, info) for info, x in zip(infos, inputs, strict=True)}
    results = loaded.forward(arrays)
    _idle.give(key, loaded)
    tensors = []
    for info, shape in zip(loaded.outputs, _shapes(outputs), strict=True):
        array = results[info.name].astype(np.float32, copy=False)
        whole = torch.from_numpy(array.reshape(-1, *_in_file_order(shape)))
        tensors.append(_in_torch_order(whole, shape))
    return tensors


def _as_in_file(x: Any, info: TensorInfo) -> Array:
    """A tensor's array (N, height, width, channels); the same memory if it has that order."""
    array: Array = x.numpy()
    if array.dtype not in (np.float32, np.uint8):
        array = array.astype(np.float32)
    if array.ndim == MAP_AXES:
        array = _channels_last(array.transpose(0, 2, 3, 1))
    return np.ascontiguousarray(array).reshape(-1, *info.shape)


def _channels_last(array: Array) -> Array:
    """Maps in that order. Of few channels NumPy copies one by one faster than pixel by pixel."""
    if array.flags.c_contiguous or array.shape[-1] > IMAGE_CHANNELS:
        return array
    copied = np.empty(array.shape, array.dtype)
    for channel in range(array.shape[-1]):
        copied[..., channel] = array[..., channel]
    return copied


def _empty(inputs: Sequence[Any], _network: Any, outputs: Sequence[int]) -> list[Any]:
    """Results of the right shapes and strides, without values."""
    x = inputs[0]
    return [
        _in_torch_order(
            x.new_empty((x.shape[0], *_in_file_order(shape)), dtype=torch.float32), shape
        )
        for shape in _shapes(outputs)
    ]


def _shapes(outputs: Sequence[int]) -> list[tuple[int, ...]]:
    shapes, at = [], 0
    while at < len(outputs):
        end = at + 1 + outputs[at]
        shapes.append(tuple(outputs[at + 1 : end]))
        at = end
    return shapes


def _in_file_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of a tensor's axes, without the batch, in the file."""
    return (*shape[1:], shape[0]) if len(shape) + 1 == MAP_AXES else shape


def _in_torch_order(x: Any, shape: tuple[int, ...]) -> Any:
    return x.permute(0, 3, 1, 2) if len(shape) + 1 == MAP_AXES else x


_library = torch.library.Library("phonebit", "DEF")
_library.define(
    "forward(Tensor[] inputs, Tensor network, int[] outputs) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.impl("forward", _forward, "CPU")
torch.library.register_fake("phonebit::forward", _empty, lib=_library)
