"""BinaryConnect's and BinaryNet's multi-layer perceptron for MNIST (Courbariaux et al., 2016).

Three hidden layers; each is a dense layer by signs, batch normalization and the sign, written as a
comparison: 2 (x >= 0) - 1. The first reads float values. The output layer is binary, too.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def binarise(x: Tensor) -> Tensor:
    """-1 or +1, from a comparison."""
    return x.ge(0).to(x.dtype) * 2 - 1


class BinaryLinear(nn.Linear):
    """Dense layer by the signs of its weights."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, binarise(self.weight), self.bias)


class Mlp(nn.Module):
    """Flatten, hidden layers, ten classes."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = BinaryLinear(inputs, hidden)
        self.bn1 = nn.BatchNorm1d(hidden)
        self.fc2 = BinaryLinear(hidden, hidden)
        self.bn2 = nn.BatchNorm1d(hidden)
        self.fc3 = BinaryLinear(hidden, hidden)
        self.bn3 = nn.BatchNorm1d(hidden)
        self.fc4 = BinaryLinear(hidden, 10)
        self.bn4 = nn.BatchNorm1d(10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.flatten(x, 1)
        x = binarise(F.dropout(self.bn1(self.fc1(x)), 0.2, self.training))
        x = binarise(F.dropout(self.bn2(self.fc2(x)), 0.2, self.training))
        x = binarise(F.dropout(self.bn3(self.fc3(x)), 0.2, self.training))
        return self.bn4(self.fc4(x))


def mnist_mlp(small: bool = False) -> nn.Module:
    """The network for 1x28x28; small: 1x12x12."""
    return Mlp(144, 72) if small else Mlp(784, 4096)
