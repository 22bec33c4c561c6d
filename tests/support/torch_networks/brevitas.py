"""CNV for CIFAR-10 as FINN's examples train it with Brevitas: W1A1 and W1A2.

The image, 0..1, becomes 2x - 1 in 8 bits. Then convolutions without padding by signs, batch
normalization (epsilon 1e-4) and the quantizer of the activations; dense layers likewise; the end is
one scalar normalization of the ten sums. sign(0) is +1. Brevitas writes its quantizers with
``where``: a sign as where(x >= 0, 1, -1), k bits as a clamp of the rounded value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class RoundSte(autograd.Function):
    """Rounding half to even, passing gradients through."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.round(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class BinarySignSte(autograd.Function):
    """-1 or +1, passing gradients through; sign(0) = +1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = torch.ge(x, 0.0)
        negative = torch.lt(x, 0.0)
        return positive.to(x.dtype) - negative.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def tensor_clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Clamp with bounds that are tensors."""
    out = torch.where(x > high, high.type_as(x), x)
    return torch.where(out < low, low.type_as(x), out)


class IntQuant(nn.Module):
    """scale * clamp(round(x / scale), low, high)."""

    def __init__(self, scale: float, low: int, high: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("low", torch.tensor(float(low)))
        self.register_buffer("high", torch.tensor(float(high)))

    def forward(self, x: Tensor) -> Tensor:
        levels = RoundSte.apply(x / self.scale)
        return tensor_clamp(levels, self.low, self.high) * self.scale


class BinaryQuant(nn.Module):
    """Signs times a constant scale of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        return BinarySignSte.apply(x) * self.scale


class QuantConv2d(nn.Conv2d):
    """Convolution by the signs of its weights."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(before, width, 3, bias=False)
        self.weight_quant = BinaryQuant()

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.weight_quant(self.weight))


class QuantLinear(nn.Linear):
    """Dense layer by the signs of its weights."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(before, width, bias=False)
        self.weight_quant = BinaryQuant()

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_quant(self.weight))


class TensorNorm(nn.Module):
    """Batch normalization with one mean, variance, weight and bias for the whole tensor."""

    def __init__(self, eps: float = 1e-4) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.rand(1))
        self.bias = nn.Parameter(torch.rand(1))
        self.register_buffer("running_mean", torch.zeros(1))
        self.register_buffer("running_var", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return (
            (x - self.running_mean) / torch.pow(self.running_var + self.eps, 0.5)
        ) * self.weight + self.bias

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """A power of two as deviation, or what training may leave."""
        deviation = 4.0 if dyadic else rng.uniform(5, 20)
        self.eps = 0.0 if dyadic else 1e-4
        self.running_mean = torch.tensor([2.0 if dyadic else rng.normal()], dtype=torch.float32)
        self.running_var = torch.tensor([deviation**2], dtype=torch.float32)
        self.weight.data = torch.tensor([0.5 if dyadic else 1.3])
        self.bias.data = torch.tensor([-0.25 if dyadic else 0.1])


class CNV(nn.Module):
    """64-64-P-128-128-P-256-256-512-512-10 without padding."""

    def __init__(self, widths: tuple[int, int, int], dense: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.conv_features = nn.ModuleList([IntQuant(2.0**-7, -128, 127)])
        self.linear_features = nn.ModuleList()
        before = 3
        for stage, width in enumerate(widths):
            for pool in (False, stage < 2):
                self.conv_features += [
                    QuantConv2d(before, width), nn.BatchNorm2d(width, eps=1e-4), act()
                ]  # fmt: skip
                if pool:
                    self.conv_features.append(nn.MaxPool2d(kernel_size=2))
                before = width
        for width in (dense, dense):
            self.linear_features += [
                QuantLinear(before, width), nn.BatchNorm1d(width, eps=1e-4), act()
            ]  # fmt: skip
            before = width
        self.linear_features.append(QuantLinear(before, 10))
        self.linear_features.append(TensorNorm())

    def forward(self, x: Tensor) -> Tensor:
        x = 2.0 * x - torch.tensor([1.0], device=x.device)
        for module in self.conv_features:
            x = module(x)
        x = x.view(x.shape[0], -1)
        for module in self.linear_features:
            x = module(x)
        return x


class TwoBitQuant(IntQuant):
    """Two bits in a symmetric range: -1, 0, 1."""

    def __init__(self) -> None:
        super().__init__(1.0, -1, 1)


def cnv_w1a1(small: bool = False) -> nn.Module:
    """The network for 3x32x32, whose last map is one pixel; small: the same with fewer channels."""
    return CNV((16, 24, 32), 40, BinaryQuant) if small else CNV((64, 128, 256), 512, BinaryQuant)


def cnv_w1a2(small: bool = False) -> nn.Module:
    """The same with activations of 2 bits."""
    return CNV((16, 24, 32), 40, TwoBitQuant) if small else CNV((64, 128, 256), 512, TwoBitQuant)
