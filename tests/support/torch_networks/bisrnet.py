"""BiSRNet, a binary U-Net that restores hyperspectral images (Cai et al., 2023).

Named as in the authors' state dict. The unit keeps its number of channels: x k + b a channel, sign,
convolution by mean|w| sign(w), RPReLU, + x. More channels are two units side by side, fewer the
mean of two units on the halves. The backward pass of the sign is that of tanh(beta x), by the
detach trick. A block is a layer norm, seven such layers and a shortcut.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

BANDS = 28


def _uniform(tensor: Tensor, rng: np.random.Generator, low: float, high: float) -> None:
    values = rng.uniform(low, high, tuple(tensor.shape)).astype(np.float32)
    tensor.data.copy_(torch.from_numpy(values))


class Shift(nn.Module):
    """+ a number per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias.expand_as(x)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        _uniform(self.bias, rng, -0.3, 0.3)


class Redistribution(nn.Module):
    """Factor and shift a channel, in front of the sign."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.k = nn.Parameter(torch.ones(1, channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.k.expand_as(x) + self.b.expand_as(x)

    def set_statistics(self, rng: np.random.Generator, dyadic: bool) -> None:
        _uniform(self.b, rng, -0.2, 0.2)
        _uniform(self.k, rng, 0.5, 1.5)


class RPReLU(nn.Module):
    """Shifted PReLU, shifted again."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pr_bias0 = Shift(channels)
        self.pr_prelu = nn.PReLU(channels)
        self.pr_bias1 = Shift(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.pr_bias1(self.pr_prelu(self.pr_bias0(x)))


class TanhSign(nn.Module):
    """sign(x) with the gradient of tanh(beta x)."""

    def __init__(self) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        smooth = torch.tanh(x * self.beta)
        return torch.sign(x).detach() - smooth.detach() + smooth


class ScaledSignConv2d(nn.Conv2d):
    """Convolution by mean|w| sign(w)."""

    def forward(self, input: Tensor) -> Tensor:
        scale = self.weight.abs().mean(3, True).mean(2, True).mean(1, True).detach()
        clipped = self.weight.clamp(-1.0, 1.0)
        binary = (scale * torch.sign(self.weight)).detach() - clipped.detach() + clipped
        return F.conv2d(input, binary, None, 1, self.padding, 1, self.groups)


class Unit(nn.Module):
    """The binary convolution of the paper."""

    def __init__(self, channels: int, kernel: int, groups: int = 1) -> None:
        super().__init__()
        self.move0 = Redistribution(channels)
        self.binary_activation = TanhSign()
        self.binary_conv = ScaledSignConv2d(
            channels, channels, kernel, padding=kernel // 2, bias=False, groups=groups
        )
        self.relu = RPReLU(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.binary_conv(self.binary_activation(self.move0(x)))) + x


class Doubled(nn.Module):
    """Two units side by side; with ``pooled`` on the map at half the size."""

    def __init__(self, channels: int, kernel: int, pooled: bool = False) -> None:
        super().__init__()
        self.biconv_1 = Unit(channels, kernel)
        self.biconv_2 = Unit(channels, kernel)
        self.avg_pool = nn.AvgPool2d(2) if pooled else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.avg_pool(x)
        return torch.cat([self.biconv_1(x), self.biconv_2(x)], dim=1)


class Halved(nn.Module):
    """The mean of two units on the halves; with ``enlarged`` on the map at twice the size."""

    def __init__(self, channels: int, kernel: int, enlarged: bool = False) -> None:
        super().__init__()
        self.biconv_1 = Unit(channels // 2, kernel)
        self.biconv_2 = Unit(channels // 2, kernel)
        self.enlarged = enlarged

    def forward(self, x: Tensor) -> Tensor:
        if self.enlarged:
            x = F.interpolate(x, scale_factor=2, mode="bilinear")
        first, second = x.chunk(2, dim=1)
        return (self.biconv_1(first) + self.biconv_2(second)) / 2


class FeedForward(nn.Module):
    """To four times the channels and back, around a grouped 3x3 unit; channels come last."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            Doubled(channels, 1),
            Doubled(2 * channels, 1),
            RPReLU(4 * channels),
            Unit(4 * channels, 3, groups=channels),
            RPReLU(4 * channels),
            Halved(4 * channels, 1),
            Halved(2 * channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class Normalised(nn.Module):
    """A layer after a layer norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fn = FeedForward(channels)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.fn(self.norm(x))


class Block(nn.Module):
    """A layer and its shortcut, on maps whose channels come first."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Normalised(channels)])

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        for block in self.blocks:
            x = block(x) + x
        return x.permute(0, 3, 1, 2)


class Body(nn.Module):
    """The U-Net: stages down, a bottleneck, as many stages up."""

    def __init__(self, channels: int, stages: int) -> None:
        super().__init__()
        wide = [channels * 2**stage for stage in range(stages)]
        self.embedding = Unit(channels, 3)
        self.encoder_layers = nn.ModuleList(
            nn.ModuleList([Block(width), Doubled(width, 3, pooled=True)]) for width in wide
        )
        self.bottleneck = Block(channels * 2**stages)
        self.decoder_layers = nn.ModuleList(
            nn.ModuleList([Halved(2 * width, 3, enlarged=True), Halved(2 * width, 1), Block(width)])
            for width in reversed(wide)
        )
        self.mapping = Unit(channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        features = self.embedding(x)
        skipped = []
        for block, down in self.encoder_layers:
            features = block(features)
            skipped.append(features)
            features = down(features)
        features = self.bottleneck(features)
        for up, fusion, block in self.decoder_layers:
            features = fusion(torch.cat([up(features), skipped.pop()], dim=1))
            features = block(features)
        return self.mapping(features) + x


class BiSRNet(nn.Module):
    """Reads the measurement's bands and after them the mask's; sides are multiples of 8."""

    def __init__(self, bands: int, stages: int) -> None:
        super().__init__()
        self.conv_in = nn.Conv2d(bands, bands, 3, padding=1, bias=False)
        self.fution = nn.Conv2d(2 * bands, bands, 1)
        self.body = nn.Sequential(Body(bands, stages))
        self.conv_out = nn.Conv2d(bands, bands, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_in(self.fution(x))
        return self.conv_out(self.body(x)) + x


def bisrnet(small: bool = False) -> nn.Module:
    """The network for 28 bands, halved twice; small: for 8 bands, halved once."""
    return BiSRNet(8, 1) if small else BiSRNet(BANDS, 2)
