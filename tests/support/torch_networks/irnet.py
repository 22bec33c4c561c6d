"""IR-Net's ResNet-20 for CIFAR-10 (Qin et al., 2020).

Weights are standardised per filter, then their signs times 2^round(log2 of the mean magnitude).
A block is twice convolution, batch normalization, + shortcut, hardtanh; where the size changes the
shortcut takes every second pixel and adds channels of zeros on both sides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class BinaryQuantize(autograd.Function):
    """sign(x), with the gradient of k tanh(t x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: Tensor, t: Tensor) -> Tensor:
        ctx.save_for_backward(x, k, t)
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, k, t = ctx.saved_tensors
        return k * t * (1 - torch.tanh(x * t) ** 2) * grad, None, None


class IRConv2d(nn.Conv2d):
    """Convolution of signs by standardised signs times a power of two."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__(before, width, 3, stride=stride, padding=1, bias=False)
        self.k = torch.tensor([10.0])
        self.t = torch.tensor([0.1])

    def forward(self, input: Tensor) -> Tensor:
        w, a = self.weight, input
        filters = w.size(0)
        bw = w - w.view(filters, -1).mean(-1).view(filters, 1, 1, 1)
        bw = bw / bw.view(filters, -1).std(-1).view(filters, 1, 1, 1)
        magnitude = bw.abs().view(filters, -1).mean(-1)
        sw = torch.pow(
            torch.tensor([2.0] * filters),
            (torch.log(magnitude) / math.log(2)).round().float(),
        )
        bw = BinaryQuantize.apply(bw, self.k, self.t)
        ba = BinaryQuantize.apply(a, self.k, self.t)
        bw = bw * sw.view(filters, 1, 1, 1).detach()
        return F.conv2d(ba, bw, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Every other filter gets many small weights, so that its scale is 1/2 instead of 1."""
        shape = tuple(self.weight.shape)
        if not dyadic:
            weights = rng.normal(0, 0.3, shape)
        else:
            # Pairs of opposite weights keep the mean at exactly 0.
            half = rng.choice([-1.0, 1.0], (shape[0], shape[1] // 2, 9))
            small = np.tile(rng.random((1, shape[1] // 2, 9)) < 0.75, (shape[0], 1, 1))
            small[::2] = False
            half = np.where(small, half * 2.0**-8, half)
            weights = np.concatenate([half, -half], axis=1).reshape(shape)
        self.weight.data = torch.from_numpy(weights.astype(np.float32))


class BasicBlock(nn.Module):
    """Two binary convolutions, each with a shortcut of its own."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = IRConv2d(before, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = IRConv2d(width, width, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.added = width // 4 if stride != 1 or before != width else 0

    def shortcut(self, x: Tensor) -> Tensor:
        """Option A of the residual networks' paper."""
        if not self.added:
            return x
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added), "constant", 0)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn1(self.conv1(x))
        out += self.shortcut(x)
        out = F.hardtanh(out)
        x1 = out
        out = self.bn2(self.conv2(out))
        out += x1
        return F.hardtanh(out)


class ResNet(nn.Module):
    """Three stages of binary blocks after a real-valued 3x3 convolution."""

    def __init__(self, widths: tuple[int, int, int], blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        layers = []
        before = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                layers.append(BasicBlock(before, width, 2 if stage and not block else 1))
                before = width
        self.layers = nn.Sequential(*layers)
        self.bn2 = nn.BatchNorm1d(before)
        self.linear = nn.Linear(before, 10)

    def forward(self, x: Tensor) -> Tensor:
        out = F.hardtanh(self.bn1(self.conv1(x)))
        out = self.layers(out)
        out = F.avg_pool2d(out, int(out.size()[3]))
        out = out.view(out.size(0), -1)
        return self.linear(self.bn2(out))


def resnet20(small: bool = False) -> nn.Module:
    """The network for 3x32x32; small: 3x16x16, one block a stage."""
    return ResNet((16, 32, 64), 1) if small else ResNet((16, 32, 64), 3)
