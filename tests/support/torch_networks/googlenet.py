"""A binary GoogLeNet: Szegedy et al.'s (2015) branches, each convolution made binary.

A unit is batch normalization, sign, convolution; four branches read the same concatenated map. The
straight-through estimator is x + (sign(x) - x).detach(), with sign(0) = +1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def binarise(x: Tensor) -> Tensor:
    """-1 or +1 with the gradient of the identity."""
    hard = torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x))
    return x + (hard - x).detach()


class BinaryUnit(nn.Module):
    """Batch normalization, sign, convolution by signs."""

    def __init__(self, before: int, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(before)
        self.conv = BinaryConv2d(before, width, kernel, padding=kernel // 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(binarise(self.norm(x)))


class BinaryConv2d(nn.Conv2d):
    """Convolution by the signs of its weights."""

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, binarise(self.weight), None, self.stride, self.padding)


class Inception(nn.Module):
    """1x1; 1x1 then 3x3; 1x1 then 5x5; max-pool then 1x1."""

    def __init__(self, before: int, widths: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        one, reduce3, three, reduce5, five, pooled = widths
        self.branch1 = BinaryUnit(before, one, 1)
        self.branch2 = nn.Sequential(BinaryUnit(before, reduce3, 1), BinaryUnit(reduce3, three, 3))
        self.branch3 = nn.Sequential(BinaryUnit(before, reduce5, 1), BinaryUnit(reduce5, five, 5))
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            BinaryUnit(before, pooled, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        branches = (self.branch1, self.branch2, self.branch3, self.branch4)
        return torch.cat([branch(x) for branch in branches], 1)


STAGES = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Widths of blocks 3a..3b, 4a..4e, 5a..5b: 1x1, reduce 3x3, 3x3, reduce 5x5, 5x5, after pool."""


class GoogLeNet(nn.Module):
    """The published arrangement without auxiliary classifiers; ``share`` divides its widths."""

    def __init__(
        self,
        share: int,
        stages: tuple[tuple[tuple[int, int, int, int, int, int], ...], ...],
        classes: int,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64 // share, 7, stride=2, padding=3, bias=False),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            BinaryUnit(64 // share, 64 // share, 1),
            BinaryUnit(64 // share, 192 // share, 3),
        )
        before = 192 // share
        blocks: list[nn.Module] = []
        for blocks_of_stage in stages:
            blocks.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            for widths in blocks_of_stage:
                one, r3, three, r5, five, pooled = (width // share for width in widths)
                blocks.append(Inception(before, (one, r3, three, r5, five, pooled)))
                before = one + three + five + pooled
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(before)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        x = F.adaptive_avg_pool2d(F.relu(self.norm(x)), (1, 1))
        return self.fc(torch.flatten(x, 1))


def googlenet(small: bool = False) -> nn.Module:
    """The network for 3x224x224; small: 3x64x64, an eighth of the widths, a block a stage."""
    if small:
        return GoogLeNet(8, tuple(stage[:1] for stage in STAGES), 10)
    return GoogLeNet(1, STAGES, 1000)
