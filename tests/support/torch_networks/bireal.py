"""Bi-Real net 18 (Liu et al., 2018): every binary convolution has a shortcut of its own.

A block is sign, convolution, batch normalization, + shortcut; where the size changes the shortcut
is an average pool, a real 1x1 convolution and batch normalization. The sign's gradient is that of a
piecewise polynomial, by the detach trick; weights are mean magnitude times sign, by the same trick.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class BinaryActivation(nn.Module):
    """sign(x), with the gradient of the polynomial that is -1, x^2 + 2x, 2x - x^2, 1."""

    def forward(self, x: Tensor) -> Tensor:
        out_forward = torch.sign(x)
        mask1 = x < -1
        mask2 = x < 0
        mask3 = x < 1
        out1 = (-1) * mask1.type(torch.float32) + (x * x + 2 * x) * (1 - mask1.type(torch.float32))
        out2 = out1 * mask2.type(torch.float32) + (-x * x + 2 * x) * (1 - mask2.type(torch.float32))
        out3 = out2 * mask3.type(torch.float32) + 1 * (1 - mask3.type(torch.float32))
        return out_forward.detach() - out3.detach() + out3


class HardBinaryConv(nn.Module):
    """Convolution by mean magnitude times sign; some checkpoints hold its weights flat, (N, 1)."""

    def __init__(
        self, before: int, width: int, kernel: int = 3, stride: int = 1, flat: bool = False
    ) -> None:
        super().__init__()
        self.stride = stride
        self.padding = kernel // 2
        self.kernel_shape = (width, before, kernel, kernel)
        count = width * before * kernel * kernel
        self.weight = nn.Parameter(torch.zeros((count, 1) if flat else self.kernel_shape))

    def forward(self, x: Tensor) -> Tensor:
        real_weights = self.weight.view(self.kernel_shape)
        scaling_factor = torch.mean(
            torch.mean(torch.mean(abs(real_weights), dim=3, keepdim=True), dim=2, keepdim=True),
            dim=1,
            keepdim=True,
        )
        scaling_factor = scaling_factor.detach()
        binary_weights_no_grad = scaling_factor * torch.sign(real_weights)
        clipped_weights = torch.clamp(real_weights, -1.0, 1.0)
        binary_weights = (
            binary_weights_no_grad.detach() - clipped_weights.detach() + clipped_weights
        )
        return F.conv2d(x, binary_weights, stride=self.stride, padding=self.padding)


class BasicBlock(nn.Module):
    """Sign, binary convolution, batch normalization, + shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.binary_activation = BinaryActivation()
        self.binary_conv = HardBinaryConv(before, width, stride=stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(
                nn.AvgPool2d(kernel_size=2, stride=stride),
                nn.Conv2d(before, width, kernel_size=1, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        out = self.binary_activation(x)
        out = self.binary_conv(out)
        out = self.bn1(out)
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        return out


class BiRealNet(nn.Module):
    """Stem of 7x7 stride 2 and max-pool, four stages of binary blocks, mean, dense layer."""

    def __init__(self, widths: tuple[int, ...], blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        before = widths[0]
        stages = []
        for stage, width in enumerate(widths):
            stride = 1 if stage == 0 else 2
            layers = [BasicBlock(before, width, stride)]
            layers += [BasicBlock(width, width, 1) for _ in range(blocks - 1)]
            stages.append(nn.Sequential(*layers))
            before = width
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.bn1(self.conv1(x)))
        x = self.avgpool(self.stages(x))
        x = x.view(x.size(0), -1)
        return self.fc(x)


def birealnet18(small: bool = False) -> nn.Module:
    """The network for 3x224x224; small: 3x64x64, three stages of two."""
    return BiRealNet((16, 40, 64), 2, 10) if small else BiRealNet((64, 128, 256, 512), 4, 1000)
