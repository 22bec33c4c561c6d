"""Tensors joined with constants, and adaptive pools of any number of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch_checks import Lambda, assert_same_results, imported  # noqa: E402

from phonebit.converter.passes.pipeline import run_pipeline  # noqa: E402

pytestmark = pytest.mark.torch

MAPS = (2, 3, 5, 4)


def counted(*shape: int) -> Tensor:
    """Different numbers that are exact in float32."""
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel()).view(shape) / 4


def class_token(m: Any, x: Tensor) -> Tensor:
    y = m.conv(x).flatten(2).transpose(1, 2)
    y = torch.cat([m.token.expand(y.shape[0], -1, -1), y], 1)
    return m.head(y[:, 0] + y.sum(1))


def coordinates(m: Any, x: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(torch.arange(5.0), torch.arange(4.0), indexing="ij")
    where = torch.stack([rows, columns])[None].expand(x.shape[0], -1, -1, -1)
    return m.wide(torch.cat([x, where], 1))


JOINED: dict[str, Callable[[Any, Tensor], Any]] = {
    "a class token": class_token,
    "coordinates": coordinates,
    "coordinates in front": lambda m, x: torch.cat([counted(2, 5, 4).expand(2, -1, -1, -1), x], 1),
    "one number": lambda m, x: torch.cat([x, torch.full((2, 1, 5, 4), 0.5)], 1),
    "zeros": lambda m, x: torch.cat([x, torch.zeros(2, 5, 5, 4)], 1),
    "rows": lambda m, x: torch.cat([x, counted(1, 3, 2, 4).expand(2, -1, -1, -1)], 2),
    "columns": lambda m, x: torch.cat([counted(1, 3, 5, 1).expand(2, -1, -1, -1), x], 3),
    "both sides": lambda m, x: torch.cat([torch.ones(2, 3, 5, 1), x, -torch.ones(2, 3, 5, 2)], -1),
    "features": lambda m, x: torch.cat([x.flatten(1), counted(7).expand(2, -1)], 1),
    "two tensors": lambda m, x: torch.cat(
        [x, counted(1, 5, 4).expand(2, -1, -1, -1), m.conv(x)], 1
    ),
    "a stack": lambda m, x: torch.stack([x, counted(3, 5, 4).expand(2, -1, -1, -1)], 1).flatten(
        1, 2
    ),
    "whole numbers": lambda m, x: torch.cat([x, torch.ones(2, 1, 5, 4, dtype=torch.int64)], 1),
    "padded channels": lambda m, x: F.pad(x, (0, 0, 0, 0, 1, 2), value=1.5),
    "all padded": lambda m, x: F.pad(x, (1, 0, 0, 2, 1, 2), value=-0.5),
}


@pytest.mark.parametrize("name", JOINED)
def test_constants_are_joined_by_value(name: str) -> None:
    parts: dict[str, Any] = {
        "conv": nn.Conv2d(3, 6, 1),
        "wide": nn.Conv2d(5, 4, 3),
        "head": nn.Linear(6, 2),
        "token": torch.ones(1, 1, 6),
    }
    x = (torch.arange(120.0).view(MAPS) % 17 - 8) / 2
    graph = assert_same_results(Lambda(JOINED[name], **parts), x)
    run_pipeline(graph)


@pytest.mark.parametrize("pool", [nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
@pytest.mark.parametrize("size", [(8, 7), (5, 4), (4, 1), (1, 7), (6, 6)])
@pytest.mark.parametrize(
    "count", [(5, 1), (1, 4), (3, 1), (1, 3), (3, 7), (2, 4), (5, 5), (12, 14), (1, 1)]
)
def test_adaptive_pools_take_any_number_of_windows(
    pool: type[nn.Module], size: tuple[int, int], count: tuple[int, int]
) -> None:
    x = torch.arange(2.0 * 3 * size[0] * size[1]).view(2, 3, *size) % 23 - 11
    assert_same_results(pool(count), x, tolerance=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_adaptive_pools_of_a_sequence_take_any_number_of_windows(count: int) -> None:
    for length in (1, 2, 5):
        x = torch.arange(2.0 * 3 * length).view(2, 3, length) % 7
        assert_same_results(nn.AdaptiveAvgPool1d(count), x, tolerance=1e-6)


def test_a_class_token_keeps_a_binary_network_binary() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        y = torch.cat([m.token.expand(2, -1, -1, -1), m.conv(x)], 3)
        return F.conv2d(torch.sign(y), torch.sign(m.weight))

    parts = {"conv": nn.Conv2d(3, 6, 1), "token": torch.ones(1, 6, 5, 1)}
    source = imported(Lambda(forward, weight=torch.ones(4, 6, 3, 3), **parts), MAPS)
    assert source.graph.expected_binary
