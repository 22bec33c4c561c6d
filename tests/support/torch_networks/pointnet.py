"""BiPointNet (Qin et al., 2021): PointNet without its transforms, binarised.

A point's coordinates are the channels of a sequence; layers of one step are shared by all points,
and the largest value of each channel describes the cloud. Two things of the paper keep the signs
after that maximum from being all +1 and all layers' sums in range: a shift of the maximum
(entropy-maximising aggregation) and a learned factor a layer (layer-wise scale recovery).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def signs(x: Tensor) -> Tensor:
    """-1 and +1 (sign(0) = +1), with the gradient of the clipped value."""
    clipped = x.clamp(-1, 1)
    return torch.where(x >= 0, 1.0, -1.0).detach() - clipped.detach() + clipped


class RecoveredScale(nn.Module):
    """A factor a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """Powers of two, or what training may leave."""
        self.scale.data.fill_(2.0 ** int(rng.integers(-3, 0)) if dyadic else rng.uniform(0.05, 0.3))


class BinaryPointwise(nn.Conv1d):
    """A dense layer for every point."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(before, width, 1, bias=False)
        self.recovery = RecoveredScale()

    def forward(self, input: Tensor) -> Tensor:
        return F.conv1d(signs(input), signs(self.weight)) * self.recovery.scale


class BinaryLinear(nn.Linear):
    """A dense layer for the cloud."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__(before, width, bias=False)
        self.recovery = RecoveredScale()

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(signs(input), signs(self.weight)) * self.recovery.scale


class ShiftedMax(nn.Module):
    """The largest value over all points, minus a number per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x.max(dim=2)[0] - self.shift

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        """About the maximum of normalised values."""
        drawn = rng.uniform(1, 3, len(self.shift))
        values = np.round(drawn * 2) / 2 if dyadic else drawn
        self.shift.data = torch.from_numpy(values.astype(np.float32))


class BiPointNet(nn.Module):
    """Pointwise layers (the first real-valued), the shifted maximum, dense layers, scores."""

    def __init__(self, widths: tuple[int, ...], dense: tuple[int, ...], classes: int) -> None:
        super().__init__()
        points: list[nn.Module] = [nn.Conv1d(3, widths[0], 1, bias=False)]
        points.append(nn.BatchNorm1d(widths[0]))
        for before, width in pairwise(widths):
            points += [nn.Hardtanh(), BinaryPointwise(before, width), nn.BatchNorm1d(width)]
        self.points = nn.Sequential(*points)
        self.aggregate = ShiftedMax(widths[-1])
        cloud: list[nn.Module] = []
        wide = (widths[-1], *dense)
        for before, width in zip(wide, dense, strict=False):
            cloud += [BinaryLinear(before, width), nn.BatchNorm1d(width), nn.Hardtanh()]
        self.cloud = nn.Sequential(*cloud)
        self.classes = nn.Linear(dense[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.cloud(self.aggregate(self.points(x))))


def bipointnet(small: bool = False) -> nn.Module:
    """64-64-64-128-1024 for 1024 points, 512-256-40; small: 16-24-32 for 64 points, 32-10."""
    if small:
        return BiPointNet((16, 24, 32), (32,), 10)
    return BiPointNet((64, 64, 64, 128, 1024), (512, 256), 40)
