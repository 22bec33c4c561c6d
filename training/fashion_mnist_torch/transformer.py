"""ViT-small: a transformer whose queries, keys, values and attention are binary.

A hybrid as BHViT is: convolutions make 8x8 tokens of 64 channels. Queries, keys and values are
signs; a token attends to those whose product with it reaches the head's threshold, instead of a
softmax. So scores are popcounts, and an attention of {0, 1} selects values. The float twin has a
softmax.

Source: after He et al. 2023 (BiViT) and Gao et al. 2025 (BHViT).
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, autograd, nn

from training.fashion_mnist_torch.layers import (
    CLASS_COUNT,
    EPSILON,
    Form,
    ResidualConv,
    activation_layer,
    conv_layer,
)


class Step(autograd.Function):
    """1 from zero on, else 0; the gradient is that of a piecewise parabola: 1 - |x|, or 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Whether x reaches 0."""
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, 0.0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Gradient with respect to x."""
        (x,) = ctx.saved_tensors
        return grad * (1 - x.abs()).clamp(min=0)


class Attention(nn.Module):
    """Heads of 32 channels over all pixels of a map; after it a dense layer, + shortcut."""

    CHANNELS: Final = 32
    SCALE: Final = 8.0
    """Divides the scores; a power of two."""

    def __init__(self, form: Form, width: int) -> None:
        super().__init__()
        self.form = form
        self.activation = activation_layer(form)
        self.query, self.key, self.value, self.result = (
            nn.Sequential(conv_layer(form, width, width, 1), nn.BatchNorm2d(width, EPSILON))
            for _ in range(4)
        )
        self.norm = nn.BatchNorm2d(width, EPSILON)
        if form == "binary":
            self.threshold = nn.Parameter(torch.full((width // self.CHANNELS, 1, 1), 7.0))

    def _heads(self, layer: nn.Module, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> float32[N][heads][32][H W]."""
        y = layer(x)
        y = self.activation(y) if self.form == "binary" else y
        return y.reshape(y.shape[0], -1, self.CHANNELS, y.shape[2] * y.shape[3])

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> the same."""
        read = self.activation(x)
        query, key, value = (self._heads(f, read) for f in (self.query, self.key, self.value))
        scores = query.transpose(2, 3) @ key
        if self.form == "binary":
            attention = Step.apply((scores - self.threshold) / self.SCALE)
        else:
            attention = F.softmax(scores / self.SCALE, 3)
        mixed = (attention @ value.transpose(2, 3)).transpose(2, 3).reshape(x.shape)
        y: Tensor = self.result(self.activation(self.norm(mixed)))
        return y + x


class FeedForward(nn.Module):
    """Two dense layers of every pixel, the first twice as wide, + shortcut."""

    def __init__(self, form: Form, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            activation_layer(form),
            conv_layer(form, width, 2 * width, 1),
            nn.BatchNorm2d(2 * width, EPSILON),
            activation_layer(form),
            conv_layer(form, 2 * width, width, 1),
            nn.BatchNorm2d(width, EPSILON),
        )

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][C][H][W] -> the same."""
        y: Tensor = self.layers(x)
        return y + x


class ViTSmall(nn.Module):
    """Two convolutions that halve the map, transformer blocks, mean, dense layer."""

    def __init__(self, form: Form, width: int = 64, blocks: int = 2) -> None:
        super().__init__()
        self.stem = conv_layer(form, 1, width // 2, stride=2)
        self.norm = nn.BatchNorm2d(width // 2, EPSILON)
        self.halving = ResidualConv(form, width // 2, width)
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(Attention(form, width), FeedForward(form, width))
                for _ in range(blocks)
            )
        )
        self.activation = activation_layer(form)
        self.logits = nn.Linear(width, CLASS_COUNT)

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][1][32][32] -> logits float32[N][10]."""
        x = self.blocks(self.halving(self.norm(self.stem(x))))
        logits: Tensor = self.logits(self.activation(x).mean((2, 3)))
        return logits
