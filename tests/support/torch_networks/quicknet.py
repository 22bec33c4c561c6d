"""QuickNet (Bannink et al., 2021): residual binary blocks, cheap real transitions between them.

A block is sign, binary convolution padded with +1, ReLU, batch normalization, + shortcut. Where the
size changes: ReLU, max-pool, a blur that halves the map, a real 1x1 convolution.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

WIDTHS = (64, 128, 256, 512)
BLOCKS = (4, 4, 4, 4)


def sign(x: Tensor) -> Tensor:
    """-1 or +1; +1 at 0, as Larq has it."""
    return torch.where(x >= 0, 1.0, -1.0)


class BinaryConv(nn.Conv2d):
    """A 3x3 convolution of signs by signs, padded with +1."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(F.pad(sign(x), (1, 1, 1, 1), value=1.0), sign(self.weight))


class Block(nn.Module):
    """Binary convolution, ReLU, batch normalization, + shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = BinaryConv(width, width, 3, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bn(F.relu(self.conv(x)))


class Blur(nn.Module):
    """A 3x3 binomial filter for each channel that halves the map."""

    def __init__(self, width: int) -> None:
        super().__init__()
        taps = torch.tensor([1.0, 2.0, 1.0]) / 4
        self.register_buffer("kernel", torch.outer(taps, taps).expand(width, 1, 3, 3).clone())

    def forward(self, x: Tensor) -> Tensor:
        assert isinstance(self.kernel, Tensor)
        return F.conv2d(x, self.kernel, stride=2, padding=1, groups=x.shape[1])


def transition(before: int, width: int) -> list[nn.Module]:
    """From one section to the next."""
    pool = nn.MaxPool2d(2, 1)
    conv = nn.Conv2d(before, width, 1, bias=False)
    return [nn.ReLU(), pool, Blur(before), conv, nn.BatchNorm2d(width)]


def quicknet(small: bool) -> nn.Module:
    """224x224 images to 1000 classes; the small one has one block a section and 10 classes."""
    stem = WIDTHS[0] // 4
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, stem, 3, 2, 1, bias=False), nn.BatchNorm2d(stem), nn.ReLU()),
        *(nn.Conv2d(stem, stem, 3, 2, 1, groups=stem, bias=False), nn.BatchNorm2d(stem)),
        *(nn.Conv2d(stem, WIDTHS[0], 1, bias=False), nn.BatchNorm2d(WIDTHS[0])),
    ]
    for section, (width, count) in enumerate(zip(WIDTHS, BLOCKS, strict=True)):
        if section:
            layers += transition(WIDTHS[section - 1], width)
        layers += [Block(width) for _ in range(1 if small else count)]
    classes = 10 if small else 1000
    head = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], classes)]
    return nn.Sequential(*layers, *head)
