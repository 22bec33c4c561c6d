"""Checkpoints of binary networks: a bit a weight, 16 bits for most other numbers.

The file is one that ``torch.load(path, weights_only=True)`` reads: a dictionary of the network's
name, "bits" (u8 tensors with the signs of binary weights, +1 as 1, the first of eight highest;
their shapes come from the network) and "numbers" (all other tensors of its state, as float16 where
that changes none of them, else as float32).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from training.fashion_mnist_torch.layers import is_binary

KEYS = {"network", "bits", "numbers"}


def save(network: nn.Module, name: str, path: Path) -> None:
    """Writes a binary network.

    Args:
        network: trained.
        name: by which ``load`` finds its builder.
        path: `.pth` file to write; replaced if it is there.
    """
    binary = _binary_keys(network)
    state = {k: v for k, v in network.state_dict().items() if v.is_floating_point()}
    content = {
        "network": name,
        "bits": {key: _packed(state[key]) for key in state if key in binary},
        "numbers": {key: _compact(state[key]) for key in state if key not in binary},
    }
    torch.save(content, path)


def load(path: Path, builders: Mapping[str, Callable[[], nn.Module]]) -> tuple[str, nn.Module]:
    """Reads a file of ``save``.

    Args:
        path: `.pth` file.
        builders: of untrained networks, by name.

    Returns:
        The network's name, and the network in eval mode with float32 weights of -1 and +1.

    Raises:
        FileNotFoundError: it is absent.
        ValueError: it holds another kind of thing, or tensors that do not fit the network.
    """
    content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or content.keys() != KEYS:
        raise ValueError(f"{path}: not a checkpoint of a binary network; train.py writes them")
    name = content["network"]
    if name not in builders:
        raise ValueError(f"{path}: got network {name!r}, expected one of {', '.join(builders)}")
    network = builders[name]()
    binary = _binary_keys(network)
    state = {k: v for k, v in network.state_dict().items() if v.is_floating_point()}
    stored = {**content["bits"], **content["numbers"]}
    if stored.keys() != state.keys() or content["bits"].keys() != binary:
        wrong = sorted(stored.keys() ^ state.keys()) or sorted(content["bits"].keys() ^ binary)
        raise ValueError(f"{path}: {name} has other tensors than the file: {', '.join(wrong)}")
    for key, tensor in stored.items():
        shape = state[key].shape
        packed = key in binary
        expected = (-(-shape.numel() // 8),) if packed else tuple(shape)
        if tuple(tensor.shape) != expected or packed != (tensor.dtype == torch.uint8):
            raise ValueError(
                f"{path}: {key} is {tensor.dtype}{list(tensor.shape)}, expected {list(expected)} "
                f"for {name}'s {list(shape)}; the file is damaged, or of another width"
            )
        state[key] = _unpacked(tensor, shape) if packed else tensor.float()
    network.load_state_dict(state, strict=False)  # only counters of training steps are missing
    return name, network.eval()


def _binary_keys(network: nn.Module) -> set[str]:
    return {f"{name}.weight" for name, layer in network.named_modules() if is_binary(layer)}


def _packed(weight: Tensor) -> Tensor:
    return torch.from_numpy(np.packbits(weight.detach().cpu().numpy().ravel() >= 0))


def _unpacked(bits: Tensor, shape: torch.Size) -> Tensor:
    signs = np.unpackbits(bits.numpy(), count=shape.numel()).astype(np.float32) * 2 - 1
    return torch.from_numpy(signs).view(shape)


def _compact(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().float().cpu()
    half = tensor.half()
    return half if torch.equal(half.float(), tensor) else tensor.clone()
