"""AdaBin's ResNet-20 for CIFAR-10 (Tu et al., 2022), named as in the authors' state dict.

Both sets of two values are learned. Activations are alpha_a (s + beta_a) with
s = sign((x - beta_a) / alpha_a), then padded with zeros; weights are alpha_w sign((w - beta_w) /
alpha_w) + beta_w with the filter's mean beta_w and standard deviation alpha_w. Maxout is
pos[c] relu(x) - neg[c] relu(-x).
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class Maxout(nn.Module):
    """Learned slopes on both sides of 0."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.neg_scale = nn.Parameter(torch.full((channels,), 0.25))
        self.pos_scale = nn.Parameter(torch.ones(channels))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        positive = self.pos_scale.view(1, -1, 1, 1) * self.relu(x)
        return positive - self.neg_scale.view(1, -1, 1, 1) * self.relu(-x)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Mostly integers, so that a chain of blocks does not need more and more bits."""
        count = len(self.pos_scale)
        if dyadic:
            pos = rng.choice([1.0, 0.5], count, p=[0.95, 0.05])
            neg = rng.choice([0.0, 1.0, -1.0, 0.5], count, p=[0.45, 0.25, 0.25, 0.05])
        else:
            pos, neg = rng.uniform(0.5, 1.2, count), rng.uniform(-0.8, 0.9, count)
        self.pos_scale.data = torch.from_numpy(pos.astype(np.float32))
        self.neg_scale.data = torch.from_numpy(neg.astype(np.float32))


class BinaryActivation(nn.Module):
    """Two learned values; the gradient is that of a piecewise polynomial, by the detach trick."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha_a = nn.Parameter(torch.tensor(1.0))
        self.beta_a = nn.Parameter(torch.tensor(0.0))

    def sign(self, x: Tensor) -> Tensor:
        """sign(x) and its gradient's polynomial."""
        forward = torch.sign(x)
        below, negative, inside = (x < bound for bound in (-1, 0, 1))
        left = -1 * below.float() + (x * x + 2 * x) * (1 - below.float())
        both = left * negative.float() + (-x * x + 2 * x) * (1 - negative.float())
        smooth = both * inside.float() + 1 * (1 - inside.float())
        return forward.detach() - smooth.detach() + smooth

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.beta_a) / self.alpha_a
        return self.alpha_a * (self.sign(x) + self.beta_a)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Powers of two and quarters."""
        alpha = 2.0 ** rng.integers(-1, 2) if dyadic else rng.uniform(0.3, 1.2)
        beta = rng.integers(-2, 3) / 4 if dyadic else rng.uniform(-0.2, 0.9)
        self.alpha_a.data = torch.tensor(alpha, dtype=torch.float32)
        self.beta_a.data = torch.tensor(beta, dtype=torch.float32)


class AdaBinConv2d(nn.Conv2d):
    """Convolution of two-valued activations by two-valued filters."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__(before, width, 3, stride=stride, padding=1, bias=False)
        self.binary_a = BinaryActivation()

    def forward(self, input: Tensor) -> Tensor:
        w = self.weight
        beta_w = w.mean((1, 2, 3)).view(-1, 1, 1, 1)
        variance = ((w - beta_w) ** 2).sum((1, 2, 3)) / w.size(1) / w.size(2) / w.size(3)
        alpha_w = torch.sqrt(variance).view(-1, 1, 1, 1)
        binary_w = torch.sign((w - beta_w) / alpha_w) * alpha_w + beta_w
        return F.conv2d(self.binary_a(input), binary_w, self.bias, self.stride, self.padding)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Filters beta_w + alpha_w (+-1), half of each sign, with dyadic alpha_w and beta_w."""
        shape = tuple(self.weight.shape)
        if dyadic:
            half = rng.choice([-1.0, 1.0], (shape[0], shape[1] // 2, *shape[2:]))
            signs = np.concatenate([half, -half], axis=1)
            alpha = 2.0 ** rng.integers(-3, 0, (shape[0], 1, 1, 1))
            weights = signs * alpha + rng.integers(-2, 3, (shape[0], 1, 1, 1)) / 16
        else:
            weights = rng.normal(rng.normal(0, 0.1, (shape[0], 1, 1, 1)), 0.3, shape)
        self.weight.data = torch.from_numpy(weights.astype(np.float32))


class BasicBlock(nn.Module):
    """Twice convolution, batch normalization, + shortcut, Maxout."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = AdaBinConv2d(before, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.nonlinear1 = Maxout(width)
        self.conv2 = AdaBinConv2d(width, width, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.nonlinear2 = Maxout(width)
        self.added = width // 4 if stride != 1 or before != width else 0

    def shortcut(self, x: Tensor) -> Tensor:
        """Every second pixel, and channels of zeros on both sides."""
        if not self.added:
            return x
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))

    def forward(self, x: Tensor) -> Tensor:
        out = self.nonlinear1(self.bn1(self.conv1(x)) + self.shortcut(x))
        return self.nonlinear2(self.bn2(self.conv2(out)) + out)


class ResNet(nn.Module):
    """Three stages of binary blocks after a real-valued 3x3 convolution."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.nonlinear1 = Maxout(16)
        self.layer1 = self._stage(16, 16, blocks, 1)
        self.layer2 = self._stage(16, 32, blocks, 2)
        self.layer3 = self._stage(32, 64, blocks, 2)
        self.bn2 = nn.BatchNorm1d(64)
        self.linear = nn.Linear(64, 10)

    def _stage(self, before: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        rest = [BasicBlock(width, width, 1) for _ in range(blocks - 1)]
        return nn.Sequential(BasicBlock(before, width, stride), *rest)

    def forward(self, x: Tensor) -> Tensor:
        out = self.nonlinear1(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        out = F.avg_pool2d(out, int(out.size(3)))
        return self.linear(self.bn2(out.view(out.size(0), -1)))


def resnet20(small: bool = False) -> nn.Module:
    """The network for 3x32x32; small: 3x16x16, one block a stage."""
    return ResNet(1 if small else 3)
