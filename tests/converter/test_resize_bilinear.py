"""Bilinear resize: the reference against a plain loop, the CPU and OpenCL against the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops.resize_bilinear import ResizeBilinear
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes
from phonebit.devices.opencl import opencl_runtime
from phonebit.errors import ConversionError
from support.engine_net import Net

_runtime = opencl_runtime()

SIZES = [((5, 7), (10, 14)), ((5, 7), (3, 4)), ((4, 6), (9, 6)), ((1, 1), (3, 2)), ((3, 2), (1, 1))]
CASES = [(old, new, corners) for old, new in SIZES for corners in (False, True)]
ISAS = [name for name, _, supported in _runtime.isas() if supported]


def resized(old: tuple[int, int], new: tuple[int, int], corners: bool, channels: int = 5) -> Graph:
    net = Net("resize")
    return net.done(net.op("y", ResizeBilinear(new, corners), net.input("x", (*old, channels))))


def pixels(graph: Graph, batch: int = 2) -> dict[str, np.ndarray]:
    shape = (batch, *graph.types["x"].shape)
    return {"x": np.random.default_rng(3).normal(size=shape).astype(np.float32)}


def place(index: int, old: int, new: int, corners: bool) -> float:
    if corners:
        return index * (old - 1) / (new - 1) if new > 1 else 0.0
    return min(max((index + 0.5) * old / new - 0.5, 0.0), old - 1)


@pytest.mark.parametrize(("old", "new", "corners"), CASES)
def test_the_reference_is_the_mean_of_four_pixels_by_their_nearness(
    old: tuple[int, int], new: tuple[int, int], corners: bool
) -> None:
    graph = resized(old, new, corners)
    x = pixels(graph)
    expected = np.zeros((2, *new, 5))
    for row in range(new[0]):
        for column in range(new[1]):
            at = (place(row, old[0], new[0], corners), place(column, old[1], new[1], corners))
            for y in range(old[0]):
                for z in range(old[1]):
                    near = max(0.0, 1 - abs(y - at[0])) * max(0.0, 1 - abs(z - at[1]))
                    expected[:, row, column] += near * x["x"][:, y, z]
    (result,) = run(graph, x).values()
    np.testing.assert_allclose(result, expected, rtol=0, atol=3e-6)  # places are float32


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("old", "new", "corners"), CASES)
def test_every_instruction_set_has_the_bits_of_the_reference(
    old: tuple[int, int], new: tuple[int, int], corners: bool, isa: str, tmp_path: Path
) -> None:
    graph = resized(old, new, corners)
    path = tmp_path / "resize.pbit"
    path.write_bytes(to_bytes(graph))
    x = pixels(graph)
    (expected,) = run(graph, x).values()
    (result,) = _runtime.Network(str(path), 2, f"cpu:{isa}").forward([x["x"]])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("channels", [1, 4, 37])
@pytest.mark.parametrize("corners", [False, True])
def test_opencl_has_the_bits_of_the_cpu(corners: bool, channels: int, tmp_path: Path) -> None:
    if not _runtime.opencl_devices():
        pytest.skip(f"no OpenCL device: {_runtime.opencl_error()}")
    graph = resized((5, 7), (11, 8), corners, channels)
    path = tmp_path / "resize.pbit"
    path.write_bytes(to_bytes(graph))
    x = [pixels(graph, 3)["x"]]
    expected = _runtime.Network(path, device="cpu").forward(x)
    network = _runtime.Network(path, device="gpu", cache_directory=str(tmp_path))
    np.testing.assert_array_equal(network.forward(x), expected)
    assert network.warnings == []


@pytest.mark.parametrize("corners", [False, True])
def test_a_file_holds_it(corners: bool) -> None:
    graph = graph_from_bytes(to_bytes(resized((5, 7), (9, 3), corners)))
    assert graph.nodes[-1].op == ResizeBilinear((9, 3), corners)


def test_an_empty_map_is_refused() -> None:
    with pytest.raises(ConversionError, match="empty map"):
        resized((5, 7), (0, 3), False)
