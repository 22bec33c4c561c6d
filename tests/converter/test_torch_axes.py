"""Axes of PyTorch's inputs and outputs by value; names of outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch_checks import Lambda  # noqa: E402

import phonebit  # noqa: E402

pytestmark = pytest.mark.torch


class Sequence(nn.Module):
    """The sequence that a recurrent layer returns."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(features, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)[0]
        return result


def transformer(features: int) -> nn.Module:
    return nn.TransformerEncoderLayer(features, 2, 12, dropout=0.0, batch_first=True)


NETWORKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "dense": (nn.Linear(8, 5), (1, 7, 8)),
    "dense layers, square": (
        nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 8)),
        (1, 8, 8),
    ),
    "layer norm": (nn.LayerNorm(8), (1, 7, 8)),
    "layer norm, square": (nn.LayerNorm(8), (1, 8, 8)),
    "convolution": (nn.Conv1d(7, 4, 3), (1, 7, 8)),
    "convolution, square": (nn.Conv1d(8, 8, 3, padding=1), (1, 8, 8)),
    "normalised convolution": (
        nn.Sequential(nn.BatchNorm1d(6), nn.Conv1d(6, 6, 1), nn.BatchNorm1d(6)),
        (2, 6, 6),
    ),
    "lstm": (Sequence(6), (1, 8, 6)),
    "lstm, square": (Sequence(6), (1, 6, 6)),
    "transformer": (transformer(6), (1, 4, 6)),
    "transformer, square": (transformer(6), (1, 6, 6)),
    "convolution of three axes": (nn.Conv3d(3, 2, 2), (1, 3, 4, 5, 6)),
    "convolution of three axes, equal sizes": (nn.Conv3d(4, 4, 3, padding=1), (1, 4, 4, 4, 4)),
    "convolution of two axes": (nn.Conv2d(4, 4, 3, padding=1), (1, 4, 4, 4)),
}


def as_map(array: np.ndarray) -> np.ndarray:
    """What PhoneBit makes of four axes."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if array.ndim == 4 else array


@pytest.mark.parametrize("name", NETWORKS)
def test_arrays_have_pytorch_s_axes_unless_they_are_maps(name: str, tmp_path: Path) -> None:
    module, shape = NETWORKS[name]
    module.eval()
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = as_map(module(x).numpy())
    phonebit.convert(module, x, tmp_path / "net.pbit")
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    got = network(as_map(x.numpy()))
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=4e-6)
    assert phonebit.verify(module, network, as_map(x.numpy()), layout="nhwc").passed
    assert phonebit.verify(module, network).passed


def returns(keys: Any) -> nn.Module:
    """A network that returns one value under several keys, or several times, and another."""

    def forward(parts: Any, x: torch.Tensor) -> Any:
        y = parts.dense(x)
        values = [y, y, parts.norm(y), y]
        return dict(zip(keys, values, strict=True)) if keys else values

    return Lambda(forward, dense=nn.Linear(8, 4), norm=nn.LayerNorm(4)).eval()


def test_a_value_under_several_keys_is_an_output_for_each(tmp_path: Path) -> None:
    keys = ["scores", "features", "normal", "inputs_0"]  # the last is the input's name
    module, x = returns(keys), torch.randn(1, 8)
    phonebit.convert(module, x, tmp_path / "net.pbit")
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    results = network(x.numpy())
    assert list(results) == ["scores", "features", "normal", "inputs_0_1"]
    for result, expected in zip(results.values(), module(x).values(), strict=True):
        np.testing.assert_allclose(result, expected.detach(), rtol=0, atol=1e-5)
    assert phonebit.verify(module, network).passed


def test_a_value_that_is_returned_twice_is_two_outputs(tmp_path: Path) -> None:
    module, x = returns(None), torch.randn(1, 8)
    phonebit.convert(module, x, tmp_path / "net.pbit")
    results = phonebit.Network.load(tmp_path / "net.pbit", device="cpu").forward(x.numpy())
    for result, expected in zip(results.values(), module(x), strict=True):
        np.testing.assert_allclose(result, expected.detach(), rtol=0, atol=1e-5)
