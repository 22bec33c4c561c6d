"""Checkpoints of the binary networks: a bit a weight, 16 bits for most other numbers.

The file is one that ``torch.load(path, weights_only=True)`` reads: a dictionary of the network's
name, "bits" (u8 tensors with the signs of weights, +1 as 1, the first of eight highest; their
shapes come from the network) and "numbers" (all other tensors of its state, as float16 where that
changes none of them, else as float32).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .networks import NETWORKS, is_binary


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


def save(network: nn.Module, name: str, path: Path) -> None:
    """Writes a binary network.

    Args:
        network: in its binary form.
        name: by which ``NETWORKS`` builds it.
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


def load(path: Path) -> tuple[str, nn.Module]:
    """Reads a file of ``save``.

    Args:
        path: `.pth` file.

    Returns:
        The network's name, and the binary network in eval mode with float32 weights of -1 and +1.

    Raises:
        FileNotFoundError: it is absent.
        ValueError: it holds another kind of thing, or tensors that do not fit the network.
    """
    content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or content.keys() != {"network", "bits", "numbers"}:
        raise ValueError(f"{path}: not a checkpoint that train.py of this folder wrote")
    name = content["network"]
    if name not in NETWORKS:
        raise ValueError(f"{path}: got network {name!r}, expected one of {', '.join(NETWORKS)}")
    network = NETWORKS[name]("binary")
    state = network.state_dict()
    binary = _binary_keys(network)
    expected = {key for key in state if state[key].is_floating_point()}
    stored = content["bits"].keys() | content["numbers"].keys()
    if stored != expected or content["bits"].keys() != binary:
        wrong = sorted(stored ^ expected) or sorted(content["bits"].keys() ^ binary)
        raise ValueError(f"{path}: {name} has other tensors than the file: {', '.join(wrong)}")
    for key in expected:
        shape = state[key].shape
        if key in binary:
            tensor = content["bits"][key]
            fits = tensor.dtype == torch.uint8 and tensor.shape == (-(-shape.numel() // 8),)
        else:
            tensor = content["numbers"][key]
            fits = tensor.shape == shape
        if not fits:
            raise ValueError(
                f"{path}: {key} is {tensor.dtype}{list(tensor.shape)}, which does not fit {name}'s "
                f"{list(shape)}; the file is damaged, or written for other widths"
            )
        state[key] = _unpacked(tensor, shape) if key in binary else tensor.float()
    network.load_state_dict(state)
    return name, network.eval()
