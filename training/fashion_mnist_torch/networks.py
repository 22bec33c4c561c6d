"""VGG-small, AlexNet-small and ResNet-18-small for pictures of 32x32x1, as BNN and as float twin.

Both forms of a network have the same layers. In the form "binary" every weight but those of the
last dense layer is -1 or +1 and every activation is a sign; in the form "float", its twin, weights
are real and the activation is ReLU. The first convolution of both reads the picture itself.

    VGG-small        128 128 P 256 256 P 512 512 P           - dense 10
    AlexNet-small    96 P 192 P 256 256 192 P - 1024 1024    - dense 10; the first two are 5x5
    ResNet-18-small  32, then 4 times each 32 64 128 256     - mean - dense 10

Numbers are filters of 3x3 convolutions or units of dense layers, P is a 2x2 max-pool between a
convolution and its batch normalization. In ResNet-18-small every convolution has a shortcut of its
own, which carries real values past the signs; where the map halves, the shortcut is a 2x2 max-pool
whose channels are taken twice. A maximum and a copy add no bits to a number, as a mean or a real
1x1 convolution would, so sums along the shortcuts can be exact (see dyadic.py).

Source: VGG-small as in Zhang et al. 2018 (LQ-Nets); residual blocks and the gradient of the sign as
in Liu et al. 2018 (Bi-Real Net, sections 3.2 and 3.3).
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn

Form = Literal["binary", "float"]

SIDE: Final = 32
"""Height and width of the pictures that the networks read."""
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


def _activation(form: Form) -> nn.Module:
    return Sign() if form == "binary" else nn.ReLU()


def _conv(form: Form, before: int, filters: int, kernel: int = 3, stride: int = 1) -> nn.Module:
    kind = BinaryConv2d if form == "binary" else nn.Conv2d
    return kind(before, filters, kernel, stride, padding=kernel // 2, bias=False)


def _dense(form: Form, before: int, units: int) -> nn.Module:
    return (BinaryLinear if form == "binary" else nn.Linear)(before, units, bias=False)


def _plain(
    form: Form, convolutions: list[tuple[int, int, bool]], dense: tuple[int, ...]
) -> nn.Module:
    """Convolutions (filters, kernel, pool behind it), dense layers, and the real one at the end."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    before, side = 1, SIDE
    for index, (filters, kernel, pool) in enumerate(convolutions, 1):
        layers[f"conv{index}"] = _conv(form, before, filters, kernel)
        if pool:
            layers[f"pool{index}"] = nn.MaxPool2d(2)
            side //= 2
        layers[f"norm{index}"] = nn.BatchNorm2d(filters, EPSILON)
        layers[f"activation{index}"] = _activation(form)
        before = filters
    layers["flatten"] = nn.Flatten()
    before *= side * side
    for index, units in enumerate(dense, len(convolutions) + 1):
        layers[f"dense{index}"] = _dense(form, before, units)
        layers[f"norm{index}"] = nn.BatchNorm1d(units, EPSILON)
        layers[f"activation{index}"] = _activation(form)
        before = units
    layers["logits"] = nn.Linear(before, CLASS_COUNT)
    return nn.Sequential(layers)


def vgg_small(form: Form) -> nn.Module:
    """VGG-small: 4.57 M binary weights."""
    widths = (128, 128, 256, 256, 512, 512)
    return _plain(form, [(width, 3, bool(i % 2)) for i, width in enumerate(widths)], ())


def alexnet_small(form: Form) -> nn.Module:
    """AlexNet-small: 6.13 M binary weights, two thirds of them in the dense layers."""
    convolutions = [
        (96, 5, True),
        (192, 5, True),
        (256, 3, False),
        (256, 3, False),
        (192, 3, True),
    ]
    return _plain(form, convolutions, (1024, 1024))


class ResidualConv(nn.Module):
    """Activation, convolution, batch normalization, + shortcut."""

    def __init__(self, form: Form, before: int, filters: int) -> None:
        super().__init__()
        self.halves = before != filters
        self.activation = _activation(form)
        self.conv = _conv(form, before, filters, stride=2 if self.halves else 1)
        self.norm = nn.BatchNorm2d(filters, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> the same, or float32[N][2 C][H/2][W/2]."""
        shortcut = x
        if self.halves:
            pooled = F.max_pool2d(x, 2)
            shortcut = torch.cat([pooled, pooled], 1)
        y: Tensor = self.norm(self.conv(self.activation(x)))
        return y + shortcut


class ResNet18Small(nn.Module):
    """Stem, sixteen convolutions with shortcuts, mean over the activations' map, dense layer."""

    def __init__(self, form: Form, widths: tuple[int, ...] = (32, 64, 128, 256)) -> None:
        super().__init__()
        self.stem = _conv(form, 1, widths[0])
        self.norm = nn.BatchNorm2d(widths[0], EPSILON)
        befores = [widths[0], *(width for width in widths for _ in range(4))]
        pairs = pairwise(befores)
        self.blocks = nn.Sequential(*(ResidualConv(form, a, b) for a, b in pairs))
        self.activation = _activation(form)
        self.logits = nn.Linear(widths[-1], CLASS_COUNT)

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][1][32][32] -> logits float32[N][10]."""
        x = self.blocks(self.norm(self.stem(x)))
        logits: Tensor = self.logits(self.activation(x).mean((2, 3)))
        return logits


NETWORKS: Final[dict[str, Callable[[Form], nn.Module]]] = {
    "vgg_small": vgg_small,
    "alexnet_small": alexnet_small,
    "resnet18_small": ResNet18Small,
}
"""By name: builds the untrained network, float32[N][1][32][32] -> logits float32[N][10]."""
BINARY: Final = {name: partial(network, "binary") for name, network in NETWORKS.items()}
"""By name: builds the untrained binary network; what ``packed_checkpoint.load`` wants."""
