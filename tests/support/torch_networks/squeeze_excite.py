"""Binary networks with squeeze-excite gates: Real-to-Binary (Martinez et al., 2020) and BNext-like.

A gate is the sigmoid of two dense layers on the channels' means, computed from a *real-valued* map,
and it multiplies the channels of a binary convolution's result. Real-to-Binary: batch
normalization, sign, convolution, times gate, PReLU, + shortcut. The BNext-like block (Guo et al.,
2022) gates by 1x1 convolutions, and at the start of the second stage multiplies its result by the
residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class SignSte(autograd.Function):
    """sign(x), passing gradients through between -1 and 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class SignConv2d(nn.Conv2d):
    """Convolution by the signs of its weights."""

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, SignSte.apply(self.weight), None, self.stride, self.padding)


def _exact_gate_(weight: Tensor, bias: Tensor, rng: np.random.Generator) -> None:
    """Gates of exactly 1/2, sigmoid(0), or 1, sigmoid of more than 17."""
    open_gates = torch.from_numpy(rng.random(len(bias)) < 0.5)
    weight[~open_gates] = 0
    weight[open_gates] = weight[open_gates].sign() / 16
    bias.copy_(open_gates * 256.0)


class DenseGate(nn.Module):
    """sigmoid(W2 relu(W1 mean(x))), shape (N, C, 1, 1)."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(before, before // 8)
        self.fc2 = nn.Linear(before // 8, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, _, _ = x.size()
        mean = F.adaptive_avg_pool2d(x, 1).view(batch, channels)
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(mean))))
        return gate.view(batch, -1, 1, 1)

    @torch.no_grad()
    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Only the exact case differs from a dense layer's own."""
        if dyadic:
            _exact_gate_(self.fc2.weight, self.fc2.bias, rng)


class ConvGate(nn.Module):
    """The same by 1x1 convolutions."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(before, before // 8, 1)
        self.excite = nn.Conv2d(before // 8, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((2, 3), keepdim=True)
        return self.excite(F.relu(self.squeeze(mean))).sigmoid()

    @torch.no_grad()
    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Only the exact case differs from a convolution's own."""
        if dyadic:
            assert self.excite.bias is not None
            _exact_gate_(self.excite.weight, self.excite.bias, rng)


class RealToBinaryBlock(nn.Module):
    """Batch normalization, sign, convolution, times gate, PReLU, + shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(before)
        self.conv = SignConv2d(before, width, 3, stride, padding=1, bias=False)
        self.gate = DenseGate(before, width)
        self.scale = nn.Parameter(torch.ones(1, width, 1, 1))
        self.prelu = nn.PReLU(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(
                nn.AvgPool2d(2, stride),
                nn.Conv2d(before, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        normal = self.bn(x)
        out = self.conv(SignSte.apply(normal)) * self.scale * self.gate(normal)
        return self.prelu(out) + self.shortcut(x)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Scales of about 1 / sqrt(K)."""
        shape = tuple(self.scale.shape)
        values = 2.0 ** rng.integers(-4, -1, shape) if dyadic else rng.uniform(0.02, 0.1, shape)
        self.scale.data = torch.from_numpy(values.astype(np.float32))


class NextBlock(nn.Module):
    """Sign, convolution, batch normalization, times gate; PReLU; times or + residual."""

    def __init__(self, before: int, width: int, stride: int, multiply: bool) -> None:
        super().__init__()
        self.conv = SignConv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.act = nn.PReLU()
        self.se = ConvGate(before, width)
        self.multiply = multiply
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(
                nn.AvgPool2d(2, stride),
                nn.Conv2d(before, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.act(self.norm(self.conv(SignSte.apply(x)))) * self.se(x)
        residual = self.shortcut(x)
        return F.hardtanh(out * residual, -4.0, 4.0) if self.multiply else out + residual


class GatedNet(nn.Module):
    """Stem as in ResNet-18, four stages of blocks, mean, dense layer."""

    def __init__(self, widths: tuple[int, ...], blocks: int, classes: int, next_: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.PReLU(widths[0]),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        layers: list[nn.Module] = []
        before = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                layers.append(
                    NextBlock(before, width, stride, multiply=stage == 1 and not block)
                    if next_
                    else RealToBinaryBlock(before, width, stride)
                )
                before = width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.stem(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def real_to_binary(small: bool = False) -> nn.Module:
    """Real-to-Binary ResNet-18 for 3x224x224; small: 3x64x64, three stages of two blocks."""
    if small:
        return GatedNet((16, 24, 64), 2, 10, next_=False)
    return GatedNet((64, 128, 256, 512), 4, 1000, next_=False)


def bnext_like(small: bool = False) -> nn.Module:
    """BNext-like ResNet-18 for 3x224x224; small: 3x64x64, three stages of two blocks."""
    if small:
        return GatedNet((16, 24, 64), 2, 10, next_=True)
    return GatedNet((64, 128, 256, 512), 4, 1000, next_=True)
