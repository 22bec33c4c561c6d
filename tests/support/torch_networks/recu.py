"""ReCU's ResNet-18 for CIFAR-10 (Xu et al., 2021).

A convolution multiplies sign(x) by sign(w - mean(w)) and then by a learned alpha[o]. In training
the weights' tails are clamped ("dead weights revive"); in use only their signs count. A block is
twice convolution, batch normalization, + shortcut, hardtanh.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class BinaryQuantize(autograd.Function):
    """sign(x), passing gradients through."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class BinaryQuantizeActivation(autograd.Function):
    """sign(x), with the gradient of the polynomial 2x - x |x|."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (2 - x.abs() * 2).clamp(min=0) * grad


class ReCUConv2d(nn.Conv2d):
    """Convolution of signs by signs of centred weights, then a scale for each filter."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__(before, width, 3, stride=stride, padding=1, bias=False)
        self.alpha = nn.Parameter(torch.rand(width, 1, 1), requires_grad=True)
        self.register_buffer("tau", torch.tensor(0.99))

    def forward(self, input: Tensor) -> Tensor:
        w = self.weight
        w1 = w - torch.mean(w, dim=[1, 2, 3], keepdim=True)
        if self.training:
            deviation = torch.sqrt(torch.var(w1, dim=[1, 2, 3], keepdim=True) + 1e-5)
            w2 = w1 / (deviation * 2 * math.sqrt(2))
            quantile = -torch.mean(torch.abs(w2)) * torch.log(2 - 2 * self.tau)
            w3 = torch.max(-quantile, torch.min(quantile, w2))
        else:
            w3 = w1
        bw = BinaryQuantize.apply(w3)
        ba = BinaryQuantizeActivation.apply(input)
        out = F.conv2d(ba, bw, self.bias, self.stride, self.padding, self.dilation, self.groups)
        return out * self.alpha

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Weights of zero mean in pairs; alpha a power of two."""
        shape, filters = tuple(self.weight.shape), len(self.alpha)
        if dyadic:
            half = rng.choice([-1.0, -0.25, 0.25, 1.0], (shape[0], shape[1] // 2, *shape[2:]))
            weights = np.concatenate([half, -half], axis=1)
            alpha = 2.0 ** rng.integers(-3, 0, filters)
        else:
            weights, alpha = rng.normal(0.05, 0.3, shape), rng.uniform(0.05, 0.3, filters)
        self.weight.data = torch.from_numpy(weights.astype(np.float32))
        self.alpha.data = torch.from_numpy(alpha.astype(np.float32)).view(-1, 1, 1)


class BasicBlock(nn.Module):
    """Two binary convolutions, each with a shortcut of its own."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = ReCUConv2d(before, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = ReCUConv2d(width, width, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, width, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = F.hardtanh(self.bn1(self.conv1(x)) + self.shortcut(x), inplace=True)
        return F.hardtanh(self.bn2(self.conv2(out)) + out, inplace=True)


class ResNet(nn.Module):
    """Four stages of binary blocks after a real-valued 3x3 convolution."""

    def __init__(self, widths: tuple[int, ...], blocks: int) -> None:
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
        self.linear = nn.Linear(before, 10)

    def forward(self, x: Tensor) -> Tensor:
        out = F.hardtanh(self.bn1(self.conv1(x)), inplace=True)
        out = F.avg_pool2d(self.layers(out), 4)
        return self.linear(out.view(out.size(0), -1))


def resnet18(small: bool = False) -> nn.Module:
    """The network for 3x32x32; small: the same images, fewer and narrower layers."""
    return ResNet((16, 24, 32, 64), 1) if small else ResNet((64, 128, 256, 512), 2)
