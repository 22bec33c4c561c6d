"""A residual network in BITorch's style (ResNet-E18, Bethge et al., 2019): maps padded with -1.

sign(0) is +1. A binary layer quantizes what it reads, pads it with -1 and convolves without padding
by the signs of its weights. A block is convolution, batch normalization, + shortcut.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class SignFunction(autograd.Function):
    """-1 or +1, passing gradients through where |x| is at most the threshold."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: float = 1.0) -> Tensor:
        ctx.save_for_backward(x, torch.tensor(threshold))
        sign = torch.sign(x)
        return torch.where(sign == 0, torch.tensor(1.0, device=x.device), sign)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, threshold = ctx.saved_tensors
        return torch.where(torch.abs(x) <= threshold, grad, torch.tensor(0.0)), None


class Sign(nn.Module):
    """Quantizer of activations and weights."""

    def forward(self, x: Tensor) -> Tensor:
        return SignFunction.apply(x, 1.0)


class QConv2d(nn.Conv2d):
    """Convolution of signs, padded with -1, by signs."""

    def __init__(self, before: int, width: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__(before, width, kernel, stride, padding, bias=False)
        self.activation = Sign()
        self.weight_quantize = Sign()

    def forward(self, input: Tensor) -> Tensor:
        padded = F.pad(
            self.activation(input),
            self._reversed_padding_repeated_twice,
            mode="constant",
            value=-1,
        )
        weight = self.weight_quantize(self.weight)
        return F.conv2d(padded, weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Block(nn.Module):
    """Convolution, batch normalization, + shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(QConv2d(before, width, 3, stride, 1), nn.BatchNorm2d(width))
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(
                nn.AvgPool2d(stride, stride) if stride != 1 else nn.Identity(),
                nn.Conv2d(before, width, kernel_size=1, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.downsample(x)


class ResNetE(nn.Module):
    """Stem as in ResNet-18, four stages of blocks, ReLU, mean, dense layer."""

    def __init__(self, widths: tuple[int, ...], blocks: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.BatchNorm2d(3, eps=2e-5, affine=False),
            nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.BatchNorm2d(widths[0]),
        ]
        before = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                layers.append(Block(before, width, 2 if stage and not block else 1))
                before = width
        layers += [nn.ReLU(), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        self.output = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.features(x))


def resnet_e18(small: bool = False) -> nn.Module:
    """The network for 3x224x224; small: 3x64x64, three stages of two blocks."""
    return ResNetE((16, 24, 64), 2, 10) if small else ResNetE((64, 128, 256, 512), 4, 1000)
