"""What the networks are made of, in the form "binary" or "float".

Source: the gradient of the sign and the shortcut around every convolution as in Liu et al. 2018
(Bi-Real Net, sections 3.2 and 3.3).
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from typing import Any, Final, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn

Form = Literal["binary", "float"]

SIDE: Final = 32
"""Height and width of the images that the networks read."""
CLASS_COUNT: Final = 10
EPSILON: Final = 2.0**-17
"""Of the batch normalizations: a power of two, so that 1 - EPSILON + EPSILON is exactly 1."""


class SignOfActivation(autograd.Function):
    """+1 from zero on, else -1; the gradient is that of a piecewise parabola: 2 - 2 |x|, or 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Signs of x."""
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Gradient with respect to x."""
        (x,) = ctx.saved_tensors
        return grad * (2 - 2 * x.abs()).clamp(min=0)


class SignOfWeight(autograd.Function):
    """+1 from zero on, else -1; the gradient passes as it is: latent weights stay in -1..1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Signs of x."""
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Gradient with respect to x."""
        return grad


class Sign(nn.Module):
    """Activation of the binary networks."""

    def forward(self, x: Tensor) -> Tensor:
        """Signs of x."""
        signs: Tensor = SignOfActivation.apply(x)
        return signs


class BinaryConv2d(nn.Conv2d):
    """Convolution by the signs of its latent weights."""

    def forward(self, input: Tensor) -> Tensor:
        """float32[N][Cin][H][W] -> float32[N][Cout][H'][W']."""
        weight = SignOfWeight.apply(self.weight)
        return F.conv2d(input, weight, None, self.stride, self.padding)


class BinaryLinear(nn.Linear):
    """Dense layer by the signs of its latent weights."""

    def forward(self, input: Tensor) -> Tensor:
        """float32[N][Cin] -> float32[N][Cout]."""
        return F.linear(input, SignOfWeight.apply(self.weight))


def is_binary(layer: nn.Module) -> bool:
    """Whether a layer acts through the signs of its weights."""
    return isinstance(layer, BinaryConv2d | BinaryLinear)


def activation_layer(form: Form) -> nn.Module:
    """Sign or ReLU."""
    return Sign() if form == "binary" else nn.ReLU()


def conv_layer(
    form: Form, before: int, filters: int, kernel: int = 3, stride: int = 1
) -> nn.Module:
    """Convolution that keeps the size of a map, but for its stride."""
    kind = BinaryConv2d if form == "binary" else nn.Conv2d
    return kind(before, filters, kernel, stride, padding=kernel // 2, bias=False)


def dense_layer(form: Form, before: int, units: int) -> nn.Module:
    """Dense layer without a bias."""
    return (BinaryLinear if form == "binary" else nn.Linear)(before, units, bias=False)


class ResidualConv(nn.Module):
    """Activation, convolution, batch normalization, + shortcut."""

    def __init__(self, form: Form, before: int, filters: int) -> None:
        super().__init__()
        self.halves = before != filters
        self.activation = activation_layer(form)
        self.conv = conv_layer(form, before, filters, stride=2 if self.halves else 1)
        self.norm = nn.BatchNorm2d(filters, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> the same, or float32[N][2 C][H/2][W/2]."""
        shortcut = x
        if self.halves:
            pooled = F.max_pool2d(x, 2)
            shortcut = torch.cat([pooled, pooled], 1)
        y: Tensor = self.norm(self.conv(self.activation(x)))
        return y + shortcut
