"""VGG16 as PhoneBit binarises it (Chen et al., DATE 2020, section VII).

Thirteen 3x3 convolutions and three dense layers. The first convolution and the last dense layer are
full precision, everything between reads and holds signs: sign, convolution, batch normalization,
max-pool where VGG16 has one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def sign(x: Tensor) -> Tensor:
    """+1 from zero on, else -1."""
    return torch.where(x >= 0, 1.0, -1.0)


class BinaryConv2d(nn.Conv2d):
    """Convolution of signs by signs."""

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(sign(input), sign(self.weight), None, self.stride, self.padding)


class BinaryLinear(nn.Linear):
    """Dense layer of signs by signs."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(sign(input), sign(self.weight))


class Vgg16(nn.Module):
    """Stages of convolutions, each ended by a pool, then the classifier."""

    def __init__(self, divide: int, side: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for filters, count in STAGES:
            for _ in range(count):
                kind = BinaryConv2d if layers else nn.Conv2d
                layers.append(kind(before, filters // divide, 3, padding=1, bias=False))
                layers.append(nn.BatchNorm2d(filters // divide))
                before = filters // divide
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        flat, dense = before * (side // 32) ** 2, 4096 // divide
        self.classifier = nn.Sequential(
            BinaryLinear(flat, dense, bias=False),
            nn.BatchNorm1d(dense),
            BinaryLinear(dense, dense, bias=False),
            nn.BatchNorm1d(dense),
            nn.ReLU(),
            nn.Linear(dense, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


def vgg16(small: bool = False, side: int = 224) -> nn.Module:
    """The network for 3 x side x side and 1000 classes; small: an eighth of the width, 3x64x64."""
    return Vgg16(8, 64, 10) if small else Vgg16(1, side, 1000)
