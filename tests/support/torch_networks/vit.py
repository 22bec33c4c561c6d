"""A vision transformer of binary attention and dense layers: the one that ``training`` trains."""

from __future__ import annotations

from torch import nn

from training.fashion_mnist_torch.transformer import ViTSmall


def binary_vit(small: bool = False) -> nn.Module:
    """For 1x32x32; small: one block and half the channels, for 1x16x16."""
    return ViTSmall("binary", 32, 1) if small else ViTSmall("binary")
