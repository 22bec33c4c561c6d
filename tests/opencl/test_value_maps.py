"""Pools, concatenation, padding, selection of channels and softmax of float maps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_parts import random_parts
from test_value_elementwise import division_tolerance
from value_launch import Sink, assert_layer, content, guarded, launch
from value_reference import Floats, Layer, average_pool, maximum_pool, rounded, stored

from phonebit import _runtime
from phonebit.converter.ops import Softmax
from phonebit.converter.writer import to_bytes
from support.engine_net import Net

RNG = np.random.default_rng(20261123)


@pytest.mark.parametrize("maximum", [True, False])
@pytest.mark.parametrize(
    ("channels", "tile", "bits", "half"),
    [
        (1, 8, True, False),
        (33, 16, True, False),
        (64, 8, True, True),
        (6, 4, False, True),
        (4, 4, False, False),
    ],
)
def test_pools_reduce_the_taps_inside_the_map(
    maximum: bool, channels: int, tile: int, bits: bool, half: bool
) -> None:
    layer = Layer((6, 5), channels, channels, (3, 2), (2, 1), (1, 2), (2, 1, 1, 2), batch=3)
    x = layer.random(RNG)
    main = (maximum_pool if maximum else average_pool)(layer, rounded(x, half))
    sink = Sink(layer, bits=bits, half=half)
    defines = {"POOL_MAX": int(maximum), "INPUT_HALF": int(half), "TILE_CHANNELS": tile}
    tolerance = 0.0 if maximum else division_tolerance(half)
    assert_layer("pool", sink, main, defines, [stored(x, half)], tolerance)


@pytest.mark.parametrize(
    "layer",
    [
        Layer((7, 7), 20, 20, (7, 7), batch=2),
        Layer((3, 40), 1, 1, (3, 40), batch=2),
        Layer((12, 11), 5, 5, (5, 6), (2, 3), (1, 2), (3, 4, 3, 4)),
        Layer((60, 2), 33, 33, (60, 1)),
    ],
    ids=["7x7", "rows", "padded", "column"],
)
def test_averages_add_blocks_and_divide_once(layer: Layer) -> None:
    x = layer.random(RNG) + np.float32(10)
    x[0, 0, 0] = np.inf
    main = average_pool(layer, x)
    defines, parts = (
        {"POOL_MAX": 0, "INPUT_HALF": 0},
        random_parts("pool", {}, layer.pixels, layer.out_c),
    )
    assert_layer("pool", Sink(layer), main, defines, [x], division_tolerance(), parts)


@pytest.mark.parametrize("halves", [(0, 0), (1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize(("first", "second"), [(4, 8), (3, 5), (1, 32), (64, 2)])
def test_operands_are_joined_channel_by_channel(
    first: int, second: int, halves: tuple[int, int]
) -> None:
    batch, size, total = 2, (3, 5), first + second
    result = guarded((batch, *size, total), np.float16 if halves[1] else np.float32)
    parts = []
    for offset, channels in ((0, first), (first, second)):
        layer = Layer(size, channels, total, batch=batch)
        parts.append(layer.random(RNG))
        defines = {"CHANNEL_OFFSET": offset, "INPUT_HALF": halves[0], "VALUES_HALF": halves[1]}
        result = launch("concat", layer, defines, [stored(parts[-1], bool(halves[0])), result])[-1]
    joined = np.concatenate(parts, axis=-1)
    expected = stored(rounded(joined, bool(halves[0])), bool(halves[1]))
    np.testing.assert_array_equal(content(result, expected.shape), expected)


@pytest.mark.parametrize(("channels", "half"), [(1, 0), (4, 0), (6, 1), (64, 1)])
def test_maps_are_surrounded_by_the_pad_value(channels: int, half: int) -> None:
    layer = Layer((3, 4), channels, channels, pads=(1, 0, 2, 3), batch=2)
    x = rounded(layer.random(RNG), bool(half))
    margins = ((0, 0), (1, 2), (0, 3), (0, 0))
    expected = stored(np.pad(x, margins, constant_values=-0.5), bool(half))
    result = guarded(expected.shape, expected.dtype)
    defines = {"PAD_FLOAT": "-0.5f", "INPUT_HALF": half, "VALUES_HALF": half}
    result = launch("pad", layer, defines, [stored(x, bool(half)), result])[-1]
    np.testing.assert_array_equal(content(result, expected.shape), expected)


@pytest.mark.parametrize("halves", [(0, 0), (1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize(("source", "count"), [(1, 3), (37, 42), (64, 32), (6, 1)])
def test_channels_are_selected_or_zero(source: int, count: int, halves: tuple[int, int]) -> None:
    layer = Layer((3, 5), source, count, batch=2)
    x = rounded(layer.random(RNG), bool(halves[0]))
    indices = RNG.integers(-1, source, count).astype(np.int32)
    expected = stored(np.where(indices < 0, np.float32(0), x[..., indices]), bool(halves[1]))
    result = guarded(expected.shape, expected.dtype)
    defines = {"INPUT_HALF": halves[0], "VALUES_HALF": halves[1]}
    arguments = [stored(x, bool(halves[0])), indices, result]
    result = launch("select_channels", layer, defines, arguments)[-1]
    np.testing.assert_array_equal(content(result, expected.shape), expected)


def cpu_softmax(x: Floats, log: bool, folder: Path) -> Floats:
    net = Net("softmax")
    graph = net.done(net.op("softmax", Softmax(log), net.input("x", x.shape[1:])))
    path = folder / "softmax.pbit"
    path.write_bytes(to_bytes(graph))
    return _runtime.Network(str(path), 1, "cpu:scalar").forward([x])[0]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("channels", "half", "group", "wide"),
    [(1, 0, 64, 0), (10, 1, 16, 0), (16, 0, 32, 0), (33, 0, 128, 0), (1000, 1, 64, 0),
     (1, 0, 16, 1), (10, 0, 64, 1), (33, 1, 32, 1), (300, 0, 128, 1), (1000, 0, 128, 1)],
)  # fmt: skip
def test_softmax_and_its_logarithm_have_the_bits_of_the_cpu(
    channels: int, half: int, group: int, wide: int, log: bool, tmp_path: Path
) -> None:
    layer = Layer((3, 3), channels, channels, batch=2)
    x = rounded(layer.random(RNG) * np.float32(5), bool(half))
    expected = stored(cpu_softmax(x, log, tmp_path), bool(half))
    result = guarded(expected.shape, expected.dtype)
    defines = {"GROUP_SIZE": group, "WIDE": wide, "INPUT_HALF": half, "VALUES_HALF": half}
    defines["SOFTMAX_LOG"] = int(log)
    result = launch("softmax", layer, defines, [stored(x, bool(half)), result])[-1]
    tolerance = 0.0 if log else division_tolerance(bool(half))
    got = content(result, expected.shape)
    if tolerance:
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=0 if not half else 1e-6)
    else:
        np.testing.assert_array_equal(got, expected)
