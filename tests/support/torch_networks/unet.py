"""A binary U-Net for segmentation: Ronneberger et al. (2015) with Bi-Real blocks (2018).

Every 3x3 convolution is sign, convolution, batch normalization, + shortcut; a map that gets more
channels is its own shortcut, twice. Maxima halve a map, a binary 2x2 transposed convolution doubles
it, and the encoder's map of that size is concatenated. The first convolution, the one that halves
the channels after a concatenation, and the head are real-valued. The result is a map of scores.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class Sign(autograd.Function):
    """sign(x), passing gradients through between -1 and 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 1)


class BinaryConv2d(nn.Conv2d):
    """Convolution of signs by signs."""

    def forward(self, input: Tensor) -> Tensor:
        weight = Sign.apply(self.weight)
        return F.conv2d(Sign.apply(input), weight, None, self.stride, self.padding)


class BinaryUp(nn.ConvTranspose2d):
    """Transposed convolution of signs by signs, 2x2 with stride 2."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(before, width, 2, stride=2, bias=False)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        return F.conv_transpose2d(Sign.apply(input), Sign.apply(self.weight), stride=2)


class Block(nn.Module):
    """Batch normalization after a binary 3x3 convolution, + shortcut."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.conv = BinaryConv2d(before, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.copies = width // before

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)) + torch.cat([x] * self.copies, dim=1)


class Up(nn.Module):
    """Twice the size and half the channels, the encoder's map after them, and two blocks."""

    def __init__(self, before: int) -> None:
        super().__init__()
        width = before // 2
        self.up = BinaryUp(before, width)
        self.norm = nn.BatchNorm2d(width)
        self.reduce = nn.Conv2d(before, width, 1, bias=False)
        self.blocks = nn.Sequential(Block(width, width), Block(width, width))

    def forward(self, x: Tensor, skipped: Tensor) -> Tensor:
        x = torch.cat([self.norm(self.up(x)), skipped], dim=1)
        return self.blocks(self.reduce(x))


class BinaryUNet(nn.Module):
    """As many stages down as up."""

    def __init__(self, width: int, stages: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        )
        self.first = Block(width, width)
        wide = [width * 2**stage for stage in range(stages)]
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), Block(w, 2 * w), Block(2 * w, 2 * w)) for w in wide
        )
        self.up = nn.ModuleList(Up(2 * w) for w in reversed(wide))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.first(self.stem(x))]
        for down in self.down:
            maps.append(down(maps[-1]))
        x = maps.pop()
        for up in self.up:
            x = up(x, maps.pop())
        return self.head(x)


def binary_unet(small: bool = False) -> nn.Module:
    """Four stages from 64 channels for 21 classes; small: two from 16 for 5."""
    return BinaryUNet(16, 2, 5) if small else BinaryUNet(64, 4, 21)
