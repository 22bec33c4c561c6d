"""Keyword spotting by convolutions along time: TC-ResNet (Choi et al., 2019), binarised.

A spectrogram's coefficients are the channels of a sequence. A block is twice hardtanh, sign,
convolution of 9 steps, batch normalization; the shortcut around it is a real-valued 1x1
convolution where the width changes. Weights are mean|w| sign(w) a filter, as in BiFSMN (Qin et al.,
2022).
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

STEPS = 9


class BinaryConv1d(nn.Conv1d):
    """Convolution of signs by scaled signs; gradients are those of the clipped values."""

    def forward(self, input: Tensor) -> Tensor:
        clipped = F.hardtanh(input)
        signs = torch.sign(input).detach() - clipped.detach() + clipped
        scale = self.weight.abs().mean((1, 2), keepdim=True)
        latent = self.weight.clamp(-1, 1)
        weight = (scale * self.weight.sign()).detach() - latent.detach() + latent
        return F.conv1d(signs, weight, None, self.stride, self.padding)


def conv(before: int, width: int, stride: int) -> nn.Module:
    """A binary convolution and its normalization."""
    binary = BinaryConv1d(before, width, STEPS, stride, padding=STEPS // 2, bias=False)
    return nn.Sequential(binary, nn.BatchNorm1d(width))


class Block(nn.Module):
    """Two binary convolutions and a shortcut."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        stride = 1 if before == width else 2
        self.first = conv(before, width, stride)
        self.second = conv(width, width, 1)
        self.shortcut: nn.Module = nn.Identity()
        if before != width:
            self.shortcut = nn.Sequential(
                nn.Conv1d(before, width, 1, stride, bias=False), nn.BatchNorm1d(width)
            )

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.hardtanh(self.first(x))) + self.shortcut(x)


class TCResNet(nn.Module):
    """A real-valued first convolution, blocks, the mean over time, and a dense layer."""

    def __init__(self, coefficients: int, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(coefficients, widths[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm1d(widths[0])
        pairs = pairwise(widths)
        self.blocks = nn.Sequential(*(Block(before, width) for before, width in pairs))
        self.classes = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.blocks(self.norm(self.stem(x))).mean(2))


def tc_resnet(small: bool = False) -> nn.Module:
    """For 40 coefficients of 128 frames and 12 words; small: narrower, for 10 of 32 frames."""
    if small:
        return TCResNet(10, (16, 24, 32), 6)
    return TCResNet(40, (64, 96, 128, 192), 12)
