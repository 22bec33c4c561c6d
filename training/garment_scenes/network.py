"""YOLOv2-Tiny in PyTorch, binary: nine convolutions, all but the last of +-1 by +-1.

The layers are those of ``models/networks/yolov2_tiny.py``, with a batch normalization after each
max-pool instead of in front of it: so about half of the bits after it are +1. The first
convolution reads the image itself. Every number that is added is exact in float32: levels are
multiples of 2^-8, sums of signs are integers, and the last layer's weights are rounded to multiples
of ``WEIGHT_STEP`` at the end of training. So any order of summation gives the same bits.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

from collections import OrderedDict
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from training.fashion_mnist_torch.layers import EPSILON, BinaryConv2d, Sign

FILTERS: Final = (16, 32, 64, 128, 256, 512, 1024, 1024)
POOLED: Final = 6
"""So many layers have a 2x2 max-pool after them; the last of these has stride 1."""
MIN_FILTERS: Final = 16
ANCHOR_COUNT: Final = 5
CLASS_COUNT: Final = 10
CHANNELS: Final = ANCHOR_COUNT * (5 + CLASS_COUNT)
STRIDE: Final = 32
FIRST_OBJECTNESS: Final = -4.0
"""Bias of objectness before training: nearly all places see nothing."""
WEIGHT_STEP: Final = 2.0**-10
"""The float weights and biases of the last layer are multiples of this."""
MAX_WEIGHT: Final = 8.0
"""1024 such weights and a bias stay below 2^14, so their sums have 24 bits at most."""


class SameSizePool(nn.Module):
    """2x2 max-pool of stride 1 whose last row and column see fewer pixels."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> the same shape."""
        return F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 2, 1)


def yolov2_tiny(width: float = 1.0) -> nn.Sequential:
    """The untrained network: float32[N][3][416][416] -> float32[N][75][13][13].

    Args:
        width: of all layers but the last, relative to the paper's; no layer has fewer filters
            than ``MIN_FILTERS``.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    before = 3
    for index, full in enumerate(FILTERS, 1):
        filters = max(MIN_FILTERS, round(full * width))
        layers[f"conv{index}"] = BinaryConv2d(before, filters, 3, padding=1, bias=False)
        if index <= POOLED:
            layers[f"pool{index}"] = SameSizePool() if index == POOLED else nn.MaxPool2d(2)
        layers[f"norm{index}"] = nn.BatchNorm2d(filters, EPSILON)
        layers[f"sign{index}"] = Sign()
        before = filters
    last = nn.Conv2d(before, CHANNELS, 1)
    assert last.bias is not None
    with torch.no_grad():
        last.bias.view(ANCHOR_COUNT, -1)[:, 4] = FIRST_OBJECTNESS
    layers["conv9"] = last
    return nn.Sequential(layers)


@torch.no_grad()
def round_last_layer_(network: nn.Sequential) -> None:
    """Makes the last layer's weights and biases multiples of ``WEIGHT_STEP``, in place."""
    last = network.conv9
    assert isinstance(last, nn.Conv2d) and last.bias is not None
    for values in (last.weight, last.bias):
        rounded = (values / WEIGHT_STEP).round() * WEIGHT_STEP
        values.copy_(rounded.clamp(-MAX_WEIGHT, MAX_WEIGHT))
