"""A binary ShuffleNet in the manner of V2 (Ma et al., 2018): split, grouped convolutions, shuffle.

A unit takes half of the channels through sign and 1x1 grouped, sign and 3x3 depthwise, sign and 1x1
convolutions, each with batch normalization, concatenates both halves and shuffles them. Weights are
a filter's mean magnitude times sign; the straight-through estimator is that of a clamp.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def binarise(x: Tensor) -> Tensor:
    """-1 or +1 with the gradient of a clamp."""
    hard = torch.where(x < 0, -1.0, 1.0)
    soft = x.clamp(-1, 1)
    return (hard - soft).detach() + soft


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of several groups in turn."""
    batch, channels, height, width = x.shape
    x = x.view(batch, groups, channels // groups, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batch, channels, height, width)


class BinaryConv2d(nn.Conv2d):
    """Sign, then convolution by mean magnitude times sign."""

    def forward(self, input: Tensor) -> Tensor:
        alpha = self.weight.abs().mean(dim=(1, 2, 3), keepdim=True).detach()
        weight = alpha * binarise(self.weight)
        return F.conv2d(
            binarise(input), weight, None, self.stride, self.padding, groups=self.groups
        )


def unit(before: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Module:
    """Binary convolution and batch normalization."""
    conv = BinaryConv2d(
        before, width, kernel, stride, padding=kernel // 2, groups=groups, bias=False
    )
    return nn.Sequential(conv, nn.BatchNorm2d(width))


class ShuffleUnit(nn.Module):
    """Splits its channels, or (stride 2) takes all of them through both branches."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        half = width // 2
        self.split = stride == 1
        entering = half if self.split else before
        self.branch1 = nn.Sequential()
        if not self.split:
            self.branch1 = nn.Sequential(
                unit(before, before, 3, 2, groups=before), unit(before, half)
            )
        self.branch2 = nn.Sequential(
            unit(entering, half, groups=2),
            unit(half, half, 3, stride, groups=half),
            unit(half, half),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.split:
            x1, x2 = x.chunk(2, dim=1)
            out = torch.cat((x1, self.branch2(x2)), dim=1)
        else:
            out = torch.cat((self.branch1(x), self.branch2(x)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNet(nn.Module):
    """Real-valued stem, three stages of units, a binary 1x1 convolution, mean, dense layer."""

    def __init__(
        self, widths: tuple[int, ...], repeats: tuple[int, ...], last: int, classes: int
    ) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0])
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        units: list[nn.Module] = []
        before = widths[0]
        for width, count in zip(widths[1:], repeats, strict=True):
            units.append(ShuffleUnit(before, width, 2))
            units += [ShuffleUnit(width, width, 1) for _ in range(count - 1)]
            before = width
        self.stages = nn.Sequential(*units)
        self.conv5 = unit(before, last)
        self.fc = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.maxpool(self.conv1(x)))
        x = F.hardtanh(self.conv5(x))
        x = x.mean([2, 3])
        return self.fc(x)


def shufflenet(small: bool = False) -> nn.Module:
    """The 1x network for 3x224x224; small: 3x64x64, two stages of two units."""
    if small:
        return ShuffleNet((8, 20, 40), (2, 2), 64, 10)
    return ShuffleNet((24, 116, 232, 464), (4, 8, 4), 1024, 1000)
