"""Operators of PyTorch after a convolution and in front of one, converted and executed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch_checks import Lambda, kinds  # noqa: E402

import phonebit  # noqa: E402
from phonebit.converter.reader import read_graph  # noqa: E402

MAPS = (2, 8, 6, 5)


def curves(_: nn.Module, x: Tensor) -> list[Tensor]:
    y = x.abs() + 0.5
    powers = [y.sqrt(), y.rsqrt(), x**2, x.pow(3), x.square(), y**-1, y**0.5, y.pow(-2)]
    units = [F.elu(x), F.elu(x, 0.5), F.selu(x), F.celu(x, 2.0), F.mish(x), F.softplus(x)]
    units += [F.softplus(x, 2.0), F.softplus(x, beta=0.3, threshold=30.0)]
    return [x.exp(), y.log(), y.reciprocal(), F.logsigmoid(x), F.softsign(x), *powers, *units]


def powers(m: nn.Module, x: Tensor) -> list[Tensor]:
    y = x.abs() + 0.5
    p, each = m.p_weight + 2.2, m.each_weight.reshape(8, 1, 1)
    pooled = x.clamp(min=1e-6).pow(p).mean((2, 3)).pow(1 / p)
    numbers = [y**e for e in (2.7, -2.3, 0.3, 1.5, -2.5, -3)]
    tensors = [y**x, y ** y.mean(1, keepdim=True), y**each, x.relu() ** (y + 1)]
    return [pooled, x**5, x**4, 2**x, 0.3**x, each**x, *numbers, *tensors]


def two_maps(m: nn.Module, x: Tensor) -> list[Tensor]:
    y = m.other(x)
    return [
        x / (y.abs() + 1),
        2 / (y.abs() + 1),
        x / (x.mean(1, keepdim=True).abs() + 1),
        torch.maximum(x, y),
        torch.minimum(x, y),
        torch.where(y > 0.5, x, 2 * x),
        x * y.mean(3, keepdim=True),
        y.mean(2, keepdim=True) + x.mean(3, keepdim=True),
        torch.minimum(x, y[:, :, :1]),
    ]


def padded_slices(_: nn.Module, x: Tensor) -> list[Tensor]:
    parts = x.reshape(-1, 2, 4, 6, 5)
    return [
        F.pad(parts, (1, 0, 0, 2, 3, 1), value=0.5).flatten(1),
        F.pad(parts, (0, 0, 2, 1)).sum(1),
        F.pad(parts, (0, 1, 0, 0, 1, 2, 1, 0)).flatten(1),
    ]


def extremes(_: nn.Module, x: Tensor) -> list[Tensor]:
    return [
        *torch.max(x, 1),
        torch.min(x, 1, keepdim=True)[0],
        x.min(2)[1],
        x.flatten(2).max(2)[0],
        x.amin((2, 3)),
        x.amax((1, 2, 3)).reshape(-1, 1),
        x.argmax(1),
        x.flatten(1).argmin(1, keepdim=True),
        x.argmax(3),
    ]


def axes_apart(_: nn.Module, x: Tensor) -> list[Tensor]:
    parts = x.reshape(-1, 8, 2, 3, 5)
    return [
        parts.mean(2),
        parts.amax((1, 2)),
        parts.sum(3),
        x.reshape(-1, 4, 2, 6, 5).amin(2),
        x.reshape(-1, 8, 2, 3, 5, 1).permute(0, 1, 2, 4, 3, 5).mean((2, 4)).flatten(2),
    ]


def constant_masks(_: nn.Module, x: Tensor) -> list[Tensor]:
    mask = torch.arange(5) >= torch.arange(6)[:, None]
    return [
        x.masked_fill(mask, 0.0),
        torch.where(mask, x, 2.5),
        torch.where(mask, x, x.sigmoid()),
        torch.where(mask, torch.arange(8.0).reshape(8, 1, 1), x),
    ]


def moments(_: nn.Module, x: Tensor) -> list[Tensor]:
    tokens = x.flatten(2).transpose(1, 2)
    return [
        x.var(1, keepdim=True),
        x.std((2, 3), correction=0),
        tokens.mean(2),
        F.normalize(x, dim=1),
        F.normalize(x, p=1.0, dim=1),
        F.normalize(tokens, p=float("inf"), dim=2),
        x.norm(dim=3),
        x.mean((1, 2, 3)).reshape(-1, 1),
    ]


def layer_norm_by_hand(_: nn.Module, x: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-6)


def normalised(m: nn.Module, x: Tensor) -> list[Tensor]:
    last = x.permute(0, 2, 3, 1)
    tokens = x.flatten(2).transpose(1, 2)
    return [
        m.layer(last).permute(0, 3, 1, 2),
        m.layer(tokens),
        m.whole(x),
        m.plain(x),
        m.rms(last).permute(0, 3, 1, 2),
        m.group(x),
        m.one_group(x),
        m.instance(x),
        m.stored(x),
        layer_norm_by_hand(m, x),
    ]


NORMS = {
    "layer": nn.LayerNorm(8),
    "whole": nn.LayerNorm((8, 6, 5)),
    "plain": nn.LayerNorm((6, 5), elementwise_affine=False),
    "rms": nn.RMSNorm(8),
    "group": nn.GroupNorm(4, 8),
    "one_group": nn.GroupNorm(1, 8, affine=False),
    "instance": nn.InstanceNorm2d(8, affine=True),
    "stored": nn.InstanceNorm2d(8, track_running_stats=True),
}
CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "curves": (curves, {}),
    "powers": (powers, {"p_weight": torch.ones(1), "each_weight": torch.ones(8)}),
    "two maps": (two_maps, {"other": nn.Conv2d(8, 8, 1)}),
    "padded slices": (padded_slices, {}),
    "extremes": (extremes, {}),
    "axes apart": (axes_apart, {}),
    "constant masks": (constant_masks, {}),
    "moments": (moments, {}),
    "normalised": (normalised, NORMS),
}
TRANSPOSED = [
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
    {"kernel_size": 3, "stride": 2},
    {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 2},
    {"kernel_size": (4, 3), "stride": (3, 1), "padding": (2, 1)},
    {"kernel_size": 3, "stride": 2, "padding": 2, "dilation": 2, "bias": False},
]


def assert_same_results(module: nn.Module, folder: Path, tolerance: float) -> None:
    """PyTorch and the engine give the same for multiples of 1/4, two images at once."""
    x = torch.from_numpy(np.random.default_rng(3).integers(-8, 9, MAPS).astype(np.float32) / 4)
    phonebit.convert(module, folder / "net.pbit", example_input=x)
    expected = module.eval()(x)
    network = phonebit.Network.load(folder / "net.pbit", device="cpu")
    images = np.ascontiguousarray(np.moveaxis(x.numpy(), 1, -1))
    results = network.forward({network.inputs[0].name: images})
    expected = [expected] if isinstance(expected, Tensor) else expected
    for number, (want, got) in enumerate(zip(expected, results.values(), strict=True)):
        array = want.detach().numpy()
        array = np.moveaxis(array, 1, -1) if array.ndim == 4 else array
        np.testing.assert_allclose(
            np.asarray(got).reshape(array.shape), array, tolerance, tolerance, err_msg=str(number)
        )


def norm_of_channels(m: Any, x: Tensor) -> Tensor:
    return m.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("norm", "size"),
    [
        (Lambda(norm_of_channels, norm=nn.LayerNorm(768, elementwise_affine=False)), (768, 4, 5)),
        (nn.GroupNorm(4, 32), (32, 56, 56)),
        (nn.InstanceNorm2d(2), (2, 200, 224)),
    ],
    ids=["layer", "group", "instance"],
)
def test_norms_of_large_means_lose_no_digits(
    norm: nn.Module, size: tuple[int, ...], tmp_path: Path
) -> None:
    """Their mean is off by two units in its last place at most: 1.2e-4 of 1000."""
    x = torch.from_numpy(np.random.default_rng(1).normal(1000, 1, (1, *size)).astype(np.float32))
    exact = norm.double()(x.double()).detach().numpy()
    phonebit.convert(norm.float(), tmp_path / "net.pbit", example_input=x)
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    images = np.ascontiguousarray(np.moveaxis(x.numpy(), 1, -1))
    got = network.forward({network.inputs[0].name: images})
    (result,) = got.values()
    np.testing.assert_allclose(result, np.moveaxis(exact, 1, -1), 0, 1.2e-4)


@pytest.mark.parametrize("name", CASES)
def test_operators_compute_what_pytorch_does(name: str, tmp_path: Path) -> None:
    function, parts = CASES[name]
    module = Lambda(lambda m, x: function(m, m.front(x)), front=nn.Conv2d(8, 8, 1), **parts)
    assert_same_results(module, tmp_path, 1e-5)


@pytest.mark.parametrize("options", TRANSPOSED, ids=str)
def test_a_transposed_convolution_is_one_of_each_phase(
    options: dict[str, Any], tmp_path: Path
) -> None:
    module = Lambda(lambda m, x: m.up(x), up=nn.ConvTranspose2d(8, 4, **options))
    assert_same_results(module, tmp_path, 0.0)


def sign(x: Tensor) -> Tensor:
    return torch.where(x >= 0, 1.0, -1.0)


@pytest.mark.parametrize("taps", [2, 3])
def test_a_binary_transposed_convolution_stays_binary(taps: int, tmp_path: Path) -> None:
    padding = taps - 2

    def network(m: nn.Module, x: Tensor) -> Tensor:
        x = F.conv_transpose2d(sign(x), sign(m.w), None, 2, padding, padding)
        return m.norm(x)

    parts = {"w": torch.ones(8, 4, taps, taps), "norm": nn.BatchNorm2d(4)}
    module = Lambda(network, **parts)
    assert_same_results(module, tmp_path, 1e-6)
    written = kinds(read_graph(tmp_path / "net.pbit"))
    convolutions = {kind for kind in written if "Conv" in kind}
    assert convolutions == {"BinaryConv2D"}
