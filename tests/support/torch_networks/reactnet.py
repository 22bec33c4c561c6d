"""ReActNet (Liu et al., 2020) in its ResNet-18 and MobileNet forms.

RSign is sign(x + b[c]), RPReLU is PReLU(x + b1[c]) + b2[c], after the addition. Where the MobileNet
form doubles its channels, two 1x1 convolutions with a shortcut each are concatenated.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from .bireal import BinaryActivation, HardBinaryConv


class LearnableBias(nn.Module):
    """x + b[c]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1), requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias.expand_as(x)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Halves between -1 and 1, or normal ones."""
        shape = tuple(self.bias.shape)
        values = rng.integers(-2, 3, shape) / 2 if dyadic else rng.normal(0, 0.2, shape)
        self.bias.data = torch.from_numpy(values.astype(np.float32))


class RPReLU(nn.Sequential):
    """PReLU between two learnable biases."""

    def __init__(self, channels: int) -> None:
        super().__init__(LearnableBias(channels), nn.PReLU(channels), LearnableBias(channels))


class RSign(nn.Sequential):
    """Sign after a learnable bias."""

    def __init__(self, channels: int) -> None:
        super().__init__(LearnableBias(channels), BinaryActivation())


class ResNetBlock(nn.Module):
    """RSign, 3x3 binary convolution, batch normalization, + shortcut, RPReLU."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.sign = RSign(before)
        self.conv = HardBinaryConv(before, width, 3, stride)
        self.bn = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(
                nn.AvgPool2d(2, stride), nn.Conv2d(before, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )  # fmt: skip
        self.act = RPReLU(width)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn(self.conv(self.sign(x)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.act(out + shortcut)


class MobileBlock(nn.Module):
    """A 3x3 and a 1x1 binary convolution, each with a shortcut; weights held flat."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.move1 = RSign(before)
        self.binary_3x3 = HardBinaryConv(before, before, 3, stride, flat=True)
        self.bn1 = nn.BatchNorm2d(before)
        self.act1 = RPReLU(before)
        self.move2 = RSign(before)
        self.pooling = nn.AvgPool2d(2, 2) if stride == 2 else None
        parts = width // before
        self.pointwise = nn.ModuleList(
            HardBinaryConv(before, before, 1, flat=True) for _ in range(parts)
        )
        self.bn2 = nn.ModuleList(nn.BatchNorm2d(before) for _ in range(parts))
        self.act2 = RPReLU(width)

    def forward(self, x: Tensor) -> Tensor:
        out1 = self.bn1(self.binary_3x3(self.move1(x)))
        if self.pooling is not None:
            x = self.pooling(x)
        out1 = self.act1(x + out1)
        out2 = self.move2(out1)
        outs = []
        for conv, bn in zip(self.pointwise, self.bn2, strict=True):
            out = bn(conv(out2))
            out += out1
            outs.append(out)
        return self.act2(outs[0] if len(outs) == 1 else torch.cat(outs, dim=1))


class ResNet18(nn.Module):
    """ReActNet in ResNet-18's form."""

    def __init__(self, widths: tuple[int, ...], blocks: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        layers: list[nn.Module] = []
        before = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                layers.append(ResNetBlock(before, width, 2 if stage and not block else 1))
                before = width
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(self.stem(x))
        return self.fc(x.mean([2, 3]))


class MobileNet(nn.Module):
    """ReActNet-A: MobileNet V1's arrangement of ``MobileBlock``."""

    def __init__(self, stages: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.feature = nn.ModuleList(
            [nn.Sequential(nn.Conv2d(3, stages[0], 3, 2, 1, bias=False), nn.BatchNorm2d(stages[0]))]
        )
        for i in range(1, len(stages)):
            # The resolution halves where the width doubles, but for the first block.
            stride = 2 if stages[i] != stages[i - 1] and stages[i - 1] != stages[0] else 1
            self.feature.append(MobileBlock(stages[i - 1], stages[i], stride))
        self.pool1 = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(stages[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.feature:
            x = block(x)
        x = self.pool1(x)
        x = x.view(x.size(0), -1)
        return self.fc(x)


def reactnet_resnet18(small: bool = False) -> nn.Module:
    """The network for 3x224x224; small: 3x64x64, three stages of two blocks."""
    return ResNet18((16, 40, 64), 2, 10) if small else ResNet18((64, 128, 256, 512), 4, 1000)


def reactnet_mobilenet(small: bool = False) -> nn.Module:
    """ReActNet-A for 3x224x224; small: 3x64x64, four blocks."""
    if small:
        return MobileNet((8, 16, 32, 32, 64), 10)
    stages = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
    return MobileNet(stages, 1000)
