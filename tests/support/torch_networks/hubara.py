"""BinaryNet's VGG-small for CIFAR-10 (Hubara et al., 2016), as its PyTorch users write it.

Layers: convolution, [max-pool], batch normalization, hardtanh; then three binary dense layers and a
logarithmic softmax. The layer that reads the image has binary weights and real-valued inputs. A
layer binarises what it reads, and adds its bias in place.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def binarise(x: Tensor) -> Tensor:
    """-1, 0 or +1."""
    return x.sign()


class BinarizeConv2d(nn.Conv2d):
    """Convolution of signs by signs; of the image's own values where there are 3 channels."""

    def forward(self, input: Tensor) -> Tensor:
        if input.size(1) != 3:
            input = binarise(input)
        out = F.conv2d(input, binarise(self.weight), None, self.stride, self.padding)
        assert self.bias is not None
        out += self.bias.view(1, -1, 1, 1).expand_as(out)
        return out


class BinarizeLinear(nn.Linear):
    """Dense layer of signs by signs."""

    def forward(self, input: Tensor) -> Tensor:
        out = F.linear(binarise(input), binarise(self.weight))
        out += self.bias.view(1, -1).expand_as(out)
        return out


class VggSmall(nn.Module):
    """128-128-P-256-256-P-512-512-P-1024-1024-10 for 32x32 images."""

    def __init__(self, widths: tuple[int, int, int], dense: int, side: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for width in widths:
            for pool in (False, True):
                layers.append(BinarizeConv2d(before, width, 3, padding=1))
                if pool:
                    layers.append(nn.MaxPool2d(2, 2))
                layers += [nn.BatchNorm2d(width), nn.Hardtanh(inplace=True)]
                before = width
        self.features = nn.Sequential(*layers)
        self.flat = before * (side // 8) ** 2
        self.classifier = nn.Sequential(
            BinarizeLinear(self.flat, dense),
            nn.BatchNorm1d(dense),
            nn.Hardtanh(inplace=True),
            BinarizeLinear(dense, dense),
            nn.BatchNorm1d(dense),
            nn.Hardtanh(inplace=True),
            BinarizeLinear(dense, 10),
            nn.BatchNorm1d(10, affine=False),
            nn.LogSoftmax(dim=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = x.view(-1, self.flat)
        return self.classifier(x)


def vgg_small(small: bool = False) -> nn.Module:
    """The network for 3x32x32; small: 3x16x16."""
    return VggSmall((16, 40, 64), 72, 16) if small else VggSmall((128, 256, 512), 1024, 32)
