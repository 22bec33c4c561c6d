"""A network of Brevitas's own layers, as its users build and convert it: W1A1, W1A2 and W1A4.

Binary weights with a constant scale; signs, or unsigned activations of a learned scale. Needs the
package brevitas.
"""

from __future__ import annotations

from itertools import pairwise

import brevitas.nn as qnn
from brevitas.quant.binary import SignedBinaryActPerTensorConst, SignedBinaryWeightPerTensorConst
from torch import Tensor, nn


class Block(nn.Module):
    """Quantizer, binary 3x3 convolution, batch normalization."""

    def __init__(self, before: int, width: int, bits: int) -> None:
        super().__init__()
        self.act: nn.Module = (
            qnn.QuantIdentity(act_quant=SignedBinaryActPerTensorConst, scaling_init=0.5)
            if bits == 1
            else qnn.QuantReLU(bit_width=bits, max_val=2.0)
        )
        self.conv = qnn.QuantConv2d(
            before, width, 3, padding=1, bias=False, weight_quant=SignedBinaryWeightPerTensorConst
        )
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(self.act(x)))


class Classifier(nn.Module):
    """A real-valued first convolution, blocks, the mean over the map, and a dense layer."""

    def __init__(self, widths: tuple[int, ...], bits: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        pairs = pairwise(widths)
        self.blocks = nn.Sequential(*(Block(before, width, bits) for before, width in pairs))
        self.classes = nn.Linear(widths[-1], 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.blocks(self.norm(self.stem(x))).mean((2, 3)))


def classifier(small: bool, bits: int) -> nn.Module:
    """For 3x32x32; small: narrower, for 3x8x8."""
    return Classifier((16, 32, 32) if small else (64, 128, 128, 256), bits)


def w1a1(small: bool = False) -> nn.Module:
    """Activations of a bit."""
    return classifier(small, 1)


def w1a2(small: bool = False) -> nn.Module:
    """Activations of two bits."""
    return classifier(small, 2)


def w1a4(small: bool = False) -> nn.Module:
    """Activations of four bits."""
    return classifier(small, 4)
