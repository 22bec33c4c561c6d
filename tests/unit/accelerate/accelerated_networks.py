"""Small PyTorch networks in exact arithmetic, so that results are equal bit for bit."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

WIDTH = 32
CLASSES = 5
SHAPE = (WIDTH, 6, 7)


class BinaryConv(nn.Module):
    """Signs of the input by signs of the weights."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        bits = torch.where(x >= 0, 1.0, -1.0)
        return F.conv2d(bits, torch.where(self.weight >= 0, 1.0, -1.0), padding=1)


class Sorted(nn.Module):
    """What PhoneBit has no operator for."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sort(1).values


class Head(nn.Module):
    """Scores of the sum of each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-2, 3, (CLASSES, WIDTH)).float())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.sum((2, 3)), self.weight)


class Pair(nn.Module):
    """Two inputs, and a dict of a map and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = BinaryConv(), BinaryConv(), Head()

    def forward(self, a: Tensor, b: Tensor) -> dict[str, Tensor]:
        summed = self.first(a) + self.second(b)
        return {"map": summed, "scores": self.head(summed)}


class SortedOnTheWay(nn.Module):
    """Parts that convert around an operator that does not, and one that is called with a number."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(BinaryConv(), BinaryConv())
        self.tail = nn.Sequential(BinaryConv(), Head())
        self.scale = Scale()

    def forward(self, x: Tensor) -> Tensor:
        return self.tail(self.scale(self.body(x).sort(1).values - 4, 2.0))


class Scale(nn.Module):
    """A factor that is an argument."""

    def forward(self, x: Tensor, factor: float) -> Tensor:
        return x * factor


def chain(*between: nn.Module) -> nn.Module:
    """Binary convolutions with modules between them, and scores."""
    torch.manual_seed(3)
    return nn.Sequential(BinaryConv(), *between, BinaryConv(), Head()).eval()


def numbers(batch: int, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Tensor:
    """Small whole numbers (batch, *shape) as floats."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-8, 9, (batch, *shape), generator=generator).float()


def eager(module: nn.Module, *inputs: Tensor) -> Any:
    """What PyTorch computes, without gradients."""
    with torch.no_grad():
        return module(*inputs)
