"""XNOR-Net's AlexNet (Rastegari et al., 2016), as its PyTorch users write it.

A block is batch normalization (epsilon 1e-4), sign, convolution or dense layer with bias, ReLU.
Weights are centred over the input channels, clamped to -1..1, and become their signs times their
mean magnitude. First and last layer are real-valued.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn


class BinActive(autograd.Function):
    """Sign of the input; besides, the channels' mean magnitude, which the networks do not use."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x)
        return x.sign(), x.abs().mean(1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad.masked_fill(x.abs().ge(1), 0)


def scaled_signs(weight: Tensor) -> Tensor:
    """alpha sign(W - mean over the input channels), alpha the mean magnitude of a filter."""
    filters, count = weight.size(0), weight[0].nelement()
    weight = weight.add(weight.mean(1, keepdim=True).mul(-1).expand_as(weight)).clamp(-1.0, 1.0)
    alpha = weight.reshape(filters, -1).norm(1, 1, keepdim=True).div(count)
    alpha = alpha.view(filters, *[1] * (weight.dim() - 1))
    return weight.sign().mul(alpha.expand_as(weight))


class XnorConv2d(nn.Conv2d):
    """Convolution by ``scaled_signs``."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, scaled_signs(self.weight), self.bias, self.stride, self.padding)


class XnorLinear(nn.Linear):
    """Dense layer by ``scaled_signs``."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, scaled_signs(self.weight), self.bias)


class BinConv2d(nn.Module):
    """Batch normalization, sign, dropout, binary layer, ReLU."""

    def __init__(self, before: int, width: int, kernel: int, padding: int, drop: float = 0) -> None:
        super().__init__()
        self.dropout_ratio = drop
        self.bn: nn.Module
        self.conv: nn.Module
        if kernel:
            self.bn = nn.BatchNorm2d(before, eps=1e-4, momentum=0.1, affine=True)
            self.conv = XnorConv2d(before, width, kernel, padding=padding)
        else:
            self.bn = nn.BatchNorm1d(before, eps=1e-4, momentum=0.1, affine=True)
            self.conv = XnorLinear(before, width)
        self.dropout = nn.Dropout(drop)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(x)
        x, _ = BinActive.apply(x)
        if self.dropout_ratio != 0:
            x = self.dropout(x)
        return self.relu(self.conv(x))


class AlexNet(nn.Module):
    """96-P-256-P-384-384-256-P-4096-4096-classes."""

    def __init__(self, widths: tuple[int, ...], dense: int, last_side: int, classes: int) -> None:
        super().__init__()
        a, b, c, d, e = widths
        self.features = nn.Sequential(
            nn.Conv2d(3, a, kernel_size=11, stride=4, padding=0),
            nn.BatchNorm2d(a, eps=1e-4, momentum=0.1, affine=True),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            BinConv2d(a, b, kernel=5, padding=2),
            nn.MaxPool2d(kernel_size=3, stride=2),
            BinConv2d(b, c, kernel=3, padding=1),
            BinConv2d(c, d, kernel=3, padding=1),
            BinConv2d(d, e, kernel=3, padding=1),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.flat = e * last_side**2
        self.dense = BinConv2d(self.flat, dense, kernel=0, padding=0)
        self.dense2 = BinConv2d(dense, dense, kernel=0, padding=0, drop=0.5)
        self.classifier = nn.Sequential(
            nn.BatchNorm1d(dense, eps=1e-3, momentum=0.1, affine=True),
            nn.Dropout(),
            nn.Linear(dense, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = x.view(x.size(0), self.flat)
        return self.classifier(self.dense2(self.dense(x)))


def alexnet(small: bool = False, side: int = 227) -> nn.Module:
    """The network for 3 x side x side; small: narrow, for 3x99x99."""
    if small:
        return AlexNet((16, 32, 40, 24, 32), 64, 2, 10)
    return AlexNet((96, 256, 384, 384, 256), 4096, (side - 35) // 32, 1000)
