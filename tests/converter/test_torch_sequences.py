"""PyTorch's recurrent layers, embeddings, convolutions of three axes, and views of many axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch_checks import Lambda, assert_equal_to_pytorch, imported  # noqa: E402

from phonebit.converter.importers.torch.importer import open_torch  # noqa: E402
from phonebit.converter.passes.pipeline import run_pipeline  # noqa: E402
from phonebit.errors import UnsupportedLayerError  # noqa: E402

pytestmark = pytest.mark.torch

SEQUENCE, MAPS = (2, 5, 8), (2, 3, 8, 7)
RECURRENT: dict[str, nn.Module] = {
    "lstm": nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True),
    "gru": nn.GRU(8, 6, 2, batch_first=True, bidirectional=True),
    "gru without bias": nn.GRU(8, 6, bias=False, batch_first=True),
    "rnn": nn.RNN(8, 6, batch_first=True),
    "rnn of relus": nn.RNN(8, 6, nonlinearity="relu", batch_first=True),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_are_within_rounding(name: str) -> None:
    def both(parts: Any, x: torch.Tensor) -> Any:
        states, last = parts.layer(x)
        last = last[0] if isinstance(last, tuple) else last
        return states + 1, last[-1] + 1

    module = Lambda(both, layer=RECURRENT[name])
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.25)
    assert_equal_to_pytorch(imported(module, SEQUENCE), tolerance=2e-5)


def test_a_sequence_may_come_before_its_batch() -> None:
    def last(parts: Any, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = parts.layer(x.transpose(0, 1))[0][-1]
        return result

    source = imported(Lambda(last, layer=nn.LSTM(8, 6)), SEQUENCE)
    assert_equal_to_pytorch(source, tolerance=2e-6)
    run_pipeline(source.graph)


def test_an_embedding_is_a_row_of_its_table() -> None:
    module = Lambda(lambda m, x: m.table(x).flatten(1) + 1, table=nn.Embedding(10, 6))
    source = open_torch(module, example_input=torch.zeros(2, 5, dtype=torch.long))
    numbers = np.array([[0, 9, 3, 3, 1], [2, 3, 4, 5, 6]], np.float32)
    assert_equal_to_pytorch(source, {source.graph.inputs[0]: numbers.reshape(2, 1, 1, 5)})
    run_pipeline(source.graph)


def decoded(x: torch.Tensor, anchors: int = 3, numbers: int = 7) -> torch.Tensor:
    """YOLO's boxes."""
    batch, _, height, width = x.shape
    y = x.view(batch, anchors, numbers, height, width).permute(0, 1, 3, 4, 2).sigmoid()
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    grid = torch.stack((columns, rows), 2).view(1, 1, height, width, 2).float()
    sizes = torch.arange(1.0, 7.0).view(1, anchors, 1, 1, 2)
    xy, wh = (y[..., 0:2] * 2 - 0.5 + grid) * 8, (y[..., 2:4] * 2) ** 2 * sizes
    return torch.cat((xy, wh, y[..., 4:]), -1).view(batch, -1, numbers)


VIEWS: dict[str, tuple[tuple[int, ...], Callable[[Any, torch.Tensor], Any]]] = {
    "YOLO": (
        (2, 21, 4, 6),
        lambda _, x: torch.cat((decoded(x), decoded(F.max_pool2d(x, 2))), 1),
    ),
    "adaptive mean": (MAPS, lambda _, x: F.adaptive_avg_pool2d(x, (3, 5)) + 1),
    "adaptive maximum": (MAPS, lambda _, x: F.adaptive_max_pool2d(x, (5, 3)) + 1),
    "adaptive, alike": (MAPS, lambda _, x: F.adaptive_avg_pool2d(x, (4, 3)) + 1),
    "adaptive, one axis": (SEQUENCE, lambda _, x: F.adaptive_avg_pool1d(x, 3) + 1),
    "unfold": (MAPS, lambda _, x: F.unfold(x, 3, padding=1, stride=2) + 1),
    "unfold of an axis": (MAPS, lambda _, x: x.unfold(2, 3, 2).unfold(3, 2, 2).flatten(1) + 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_pools_are_within_rounding(name: str) -> None:
    shape, function = VIEWS[name]
    assert_equal_to_pytorch(imported(Lambda(function), shape), tolerance=2e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv3d(4, 8, 3),
        nn.Conv3d(4, 6, (3, 2, 3), stride=2, padding=1, groups=2, bias=False),
        nn.Conv3d(4, 4, 3, padding="same"),
        nn.Conv3d(4, 4, 3, dilation=(1, 2, 1)),
    ],
    ids=["plain", "strided groups", "same", "dilated"],
)
def test_convolutions_of_three_axes_are_exact(layer: nn.Module) -> None:
    module = Lambda(lambda m, x: m.layer(x).relu().amax((2, 3, 4)), layer=layer)
    assert_equal_to_pytorch(imported(module, (2, 4, 5, 6, 7)))


def test_binary_convolutions_of_three_axes_stay_binary() -> None:
    def convolved(m: Any, x: torch.Tensor) -> torch.Tensor:
        signs = torch.where(x >= 0, 1.0, -1.0)
        return F.conv3d(signs, torch.where(m.w >= 0, 1.0, -1.0), padding=1) + 1

    source = imported(Lambda(convolved, w=torch.randn(8, 4, 3, 3, 3)), (1, 4, 3, 5, 5))
    assert_equal_to_pytorch(source)
    engine = run_pipeline(source.graph).graph
    kinds = [type(node.op).__name__ for node in engine.nodes]
    assert kinds.count("BinaryConv2D") == 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m, x: m.lstm(x, (torch.ones(1, 2, 6),) * 2)[0], "begins with a state"),
        (lambda m, x: m.lstm(x.repeat(1, 60, 1))[0], "expected at most 256"),
        (lambda m, x: m.projected(x)[0], "projects its state"),
    ],
)
def test_what_recurrent_layers_cannot_do_is_refused(function: Any, message: str) -> None:
    projected = nn.LSTM(8, 6, proj_size=3, batch_first=True)
    module = Lambda(function, lstm=nn.LSTM(8, 6, batch_first=True), projected=projected)
    with pytest.raises(UnsupportedLayerError, match=message):
        imported(module, SEQUENCE)
