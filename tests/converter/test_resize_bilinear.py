"""Resize: the reference against a plain loop (tests/conformance: backends against it)."""

from __future__ import annotations

import numpy as np
import pytest

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops.resize_bicubic import ResizeBicubic
from phonebit.converter.ops.resize_bilinear import Resize, ResizeBilinear
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes
from phonebit.errors import ConversionError
from support.engine_net import Net

SIZES = [((5, 7), (10, 14)), ((5, 7), (3, 4)), ((4, 6), (9, 6)), ((1, 1), (3, 2)), ((3, 2), (1, 1))]
KINDS = [ResizeBilinear, ResizeBicubic]
CASES = [(*sizes, corners, kind) for sizes in SIZES for corners in (False, True) for kind in KINDS]


def resized(
    old: tuple[int, int],
    new: tuple[int, int],
    corners: bool,
    kind: type[Resize] = ResizeBilinear,
    channels: int = 5,
) -> Graph:
    net = Net("resize")
    return net.done(net.op("y", kind(new, corners), net.input("x", (*old, channels))))


def pixels(graph: Graph, batch: int = 2) -> dict[str, np.ndarray]:
    shape = (batch, *graph.types["x"].shape)
    return {"x": np.random.default_rng(3).normal(size=shape).astype(np.float32)}


def place(index: int, old: int, new: int, corners: bool) -> float:
    if corners:
        return index * (old - 1) / (new - 1) if new > 1 else 0.0
    return (index + 0.5) * old / new - 0.5


def shares(at: float, size: int, kind: type[Resize]) -> np.ndarray:
    """How much each pixel of an axis has of one at a place."""
    result, a = np.zeros(size), -0.75
    for pixel in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
        d = abs(pixel - at)
        share = max(0.0, 1 - d)
        if kind is ResizeBicubic and d < 1:
            share = (a + 2) * d**3 - (a + 3) * d**2 + 1
        elif kind is ResizeBicubic and d < 2:
            share = a * (d**3 - 5 * d**2 + 8 * d - 4)
        result[min(max(pixel, 0), size - 1)] += share
    return result


@pytest.mark.parametrize(("old", "new", "corners", "kind"), CASES)
def test_the_reference_is_the_mean_of_pixels_by_their_nearness(
    old: tuple[int, int], new: tuple[int, int], corners: bool, kind: type[Resize]
) -> None:
    graph = resized(old, new, corners, kind)
    x = pixels(graph)
    rows, columns = (
        [shares(place(i, old[axis], new[axis], corners), old[axis], kind) for i in range(new[axis])]
        for axis in range(2)
    )
    expected = np.einsum("yh,xw,nhwc->nyxc", rows, columns, x["x"])
    (result,) = run(graph, x).values()
    tolerance = 3e-6 if kind is ResizeBilinear else 6e-6  # places are float32; cubics are steeper
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_holds_it(kind: type[Resize], corners: bool) -> None:
    graph = graph_from_bytes(to_bytes(resized((5, 7), (9, 3), corners, kind)))
    assert graph.nodes[-1].op == kind((9, 3), corners)


def test_an_empty_map_is_refused() -> None:
    with pytest.raises(ConversionError, match="empty map"):
        resized((5, 7), (0, 3), False)
