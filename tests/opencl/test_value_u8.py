"""Convolutions of u8 images: direct, by bit-planes, by pairs of pixels, on tensor cores or their
emulation; integers, so results are equal."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from kernel_driver import pack_bits
from test_binary_mma import has_tensor_cores
from value_launch import Sink, assert_layer, content, guarded, launch
from value_reference import Array, Layer, integer_convolution, taps

RNG = np.random.default_rng(20261122)
FIRST = Layer((9, 8), 3, 33, (3, 3), (2, 1), pads=(0, 1, 1, 1), batch=3)
LARGE = Layer((8, 9), 3, 8, (7, 5), (1, 2), (1, 2), (3, 1, 2, 4))
LARGE_DENSE = Layer((8, 9), 3, 8, (7, 5), (1, 2), (1, 1), (3, 1, 2, 4))
STRIDED = Layer((15, 19), 3, 40, (11, 11), (4, 4), batch=3)
LONG_ROWS = Layer((5, 6), 31, 9, (3, 2), pads=(0, 1, 1, 1))
WIDE = Layer((3, 4), 33, 65, (2, 3), pads=(1, 0, 0, 2), batch=2)
RUNS = Layer((4, 5), 13, 33, (2, 3), pads=(1, 0, 0, 2), batch=2)
POINT = Layer((3, 5), 1, 4, batch=2)
UNPADDED = Layer((7, 6), 4, 16, (3, 2), (1, 1), (2, 1))
GROUPED = Layer((5, 4), 6, 9, (3, 2), pads=(1, 1, 1, 0), groups=3, batch=2)


def operands(layer: Layer) -> tuple[Array, Array]:
    x = RNG.integers(0, 256, (layer.batch, *layer.size, layer.in_c)).astype(np.uint8)
    shape = (layer.out_c, *layer.kernel, layer.in_c // layer.groups)
    return x, RNG.choice(np.array([-1, 1], np.int8), shape)


def affine(mul: int, add: int) -> dict[str, Any]:
    return {"INPUT_MUL": f"({mul})", "INPUT_ADD": f"({add})"}


def window_planes(layer: Layer, x: Array, mul: int, add: int) -> Array:
    """What split_planes writes, plane by plane."""
    seen = taps(layer, x)
    values = np.stack([v for v, _ in seen], axis=3).reshape(layer.pixels, -1)
    planes = [pack_bits(values.astype(np.int32) >> i & 1) for i in range(8)]
    result = [np.stack(planes, axis=-1).ravel()]
    if layer.defines()["PADDED"] and add:
        inside = np.stack([np.broadcast_to(m, layer.output_shape[:3]) for _, m in seen], axis=3)
        result.append(
            pack_bits(np.repeat(inside.reshape(layer.pixels, -1), layer.in_c, axis=-1)).ravel()
        )
    return np.concatenate(result)


def plane_weights(layer: Layer, signs: Array) -> Array:
    """[words of a window][32 * OUT_WORDS]."""
    packed = pack_bits(signs.reshape(layer.out_c, -1)).T
    return np.pad(packed, ((0, 0), (0, -layer.out_c % 32)))


def sign_weights(layer: Layer, signs: Array) -> Array:
    """[taps][32 * OUT_WORDS]."""
    rows = signs.reshape(layer.out_c, -1).T.astype(np.int32)
    return np.pad(rows, ((0, 0), (0, -layer.out_c % 32)))


def mma_bytes(layer: Layer, signs: Array, tile_filters: int) -> Array:
    """Weights in the order of ``@weights mma of bytes``."""
    run = signs.reshape(layer.out_c, layer.kernel[0], -1)
    octets = np.zeros((*run.shape[:2], -(-run.shape[2] // 8), 8), np.int8)
    whole = run.shape[2] // 8 * 8
    octets[:, :, : whole // 8] = run[:, :, :whole].reshape(*run.shape[:2], -1, 8)
    if whole < run.shape[2]:
        octets[:, :, -1, whole - run.shape[2] :] = run[:, :, whole:]
    flat = octets.reshape(layer.out_c, -1)
    tiles, chunks = -(-layer.out_c // tile_filters), -(-flat.shape[1] // 32)
    padded = np.zeros((tiles * tile_filters, chunks * 32), np.int8)
    padded[: layer.out_c, : flat.shape[1]] = flat
    # tile, quarter q, block, i; chunk, part, byte
    axes = padded.reshape(tiles, 4, tile_filters // 8, 2, chunks, 4, 8)
    # tile, chunk, block, column 2 q + i, part, byte
    return np.ascontiguousarray(axes.transpose(0, 4, 2, 1, 3, 5, 6))


def mma_tune(pixels: int, filters: int, warps: int = 2) -> dict[str, int]:
    tune = {"TILE_PIXELS": pixels, "TILE_FILTERS": filters, "WARPS": warps}
    return tune if has_tensor_cores() else tune | {"PHONEBIT_EMULATE_MMA": 1}


def split(layer: Layer, x: Array, mul: int, add: int) -> Array:
    expected = window_planes(layer, x, mul, add)
    results = launch(
        "split_planes", layer, affine(mul, add), [x, guarded(expected.shape, np.uint32)]
    )
    planes = content(results[-1], expected.shape)
    np.testing.assert_array_equal(planes, expected)
    return planes


def check(
    kernel: str,
    layer: Layer,
    form: tuple[int, int],
    tile: tuple[int, int],
    threshold: bool,
    given: tuple[Array, Array] | None = None,
) -> None:
    x, signs = given or operands(layer)
    acc = integer_convolution(layer, x, signs, *form)
    defines = {**affine(*form), "TILE_PIXELS": tile[0], "TILE_FILTERS": tile[1]}
    if kernel == "conv2d_u8_planes":
        inputs = [split(layer, x, *form), plane_weights(layer, signs)]
    elif kernel == "conv2d_u8_mma":
        inputs = [x, mma_bytes(layer, signs, tile[1])]
        defines |= mma_tune(*tile)
    elif kernel == "conv2d_u8_pairs":
        inputs = [x, sign_weights(layer, signs)]
    else:
        inputs = [x, pack_bits(signs)]
    if not threshold:
        scale, bias = RNG.standard_normal((2, layer.out_c), np.float32)
        minimum = 32 if kernel == "conv2d_u8_mma" else 8
        sink = Sink(layer, bits=tile[1] >= minimum).scale_bias(scale, bias)
        dummy = np.zeros(1, np.int32)
        assert_layer(kernel, sink, acc.astype(np.float32), defines, [*inputs, dummy])
        return
    # Limits that accumulators reach exactly, and impossible ones.
    table = np.full(32 * ceil(layer.out_c / 32), 2**31 - 1, np.int32)
    table[: layer.out_c] = acc[-1, -1, 0]
    table[0] = -(2**31)
    macros = {"THRESHOLD": 1, "SINK_PARAMS": ", __global uint* bits", "SINK_ARGS": ", bits"}
    shape = (*layer.output_shape[:3], ceil(layer.out_c / 32))
    results = launch(
        kernel, layer, {**macros, **defines}, [*inputs, table, guarded(shape, np.uint32)]
    )
    expected = pack_bits(np.where(acc >= table[: layer.out_c], 1, -1))
    np.testing.assert_array_equal(content(results[-1], shape), expected)


@pytest.mark.parametrize(
    ("layer", "form", "tile", "threshold"),
    [
        (FIRST, (2, -255), (2, 8), True),
        (FIRST, (1, 0), (4, 32), True),
        (FIRST, (-3, 7), (4, 16), False),
        (LARGE, (1, 0), (1, 4), False),
        (WIDE, (2, -255), (2, 16), True),
        (WIDE, (0, 5), (4, 8), False),
        (POINT, (2, -255), (2, 8), True),
        (GROUPED, (2, -255), (2, 8), False),
        (GROUPED, (2, -255), (1, 16), True),
        # Sums beyond 2^24 are integers.
        (FIRST, (20000, -300001), (2, 8), True),
        (UNPADDED, (20000, 300001), (2, 8), False),
    ],
)
def test_direct_convolutions_are_exact(
    layer: Layer, form: tuple[int, int], tile: tuple[int, int], threshold: bool
) -> None:
    check("conv2d_u8_direct", layer, form, tile, threshold)


@pytest.mark.parametrize(
    ("layer", "form", "tile", "threshold"),
    [
        (FIRST, (2, -255), (2, 8), True),
        (FIRST, (1, 0), (1, 32), False),
        (LARGE, (-2, 100), (2, 4), False),
        (WIDE, (2, -255), (1, 16), True),
        (POINT, (2, -255), (2, 8), False),
        (UNPADDED, (2, -255), (2, 8), True),
        (UNPADDED, (20000, 300001), (1, 8), False),
    ],
)
def test_bit_plane_convolutions_are_exact(
    layer: Layer, form: tuple[int, int], tile: tuple[int, int], threshold: bool
) -> None:
    check("conv2d_u8_planes", layer, form, tile, threshold)


@pytest.mark.parametrize(
    ("layer", "form", "tile", "threshold"),
    [
        (FIRST, (2, -255), (2, 8), True),
        (FIRST, (1, 0), (8, 32), False),
        # Windows whose rows are added up four at a time, and one by one.
        (LARGE, (-1, 100), (4, 4), False),
        (STRIDED, (2, -255), (4, 16), True),
        (LONG_ROWS, (-2, 255), (2, 8), False),
        (POINT, (0, 5), (8, 8), True),
        (UNPADDED, (1, -128), (4, 16), False),
    ],
)
def test_convolutions_by_pairs_of_pixels_are_exact(
    layer: Layer, form: tuple[int, int], tile: tuple[int, int], threshold: bool
) -> None:
    check("conv2d_u8_pairs", layer, form, tile, threshold)


def test_sums_of_pairs_fill_their_fields() -> None:
    """The largest values of both signs, and weights of one, in rows of 64 taps."""
    layer = Layer((3, 6), 16, 8, (3, 4), pads=(1, 1, 1, 1))
    levels = np.full((1, 3, 6, 16), 255, np.uint8)
    levels[:, :, 3:] = 0
    weights = np.ones((8, 3, 4, 16), np.int8)
    check("conv2d_u8_pairs", layer, (2, -255), (4, 8), False, (levels, weights))


@pytest.mark.parametrize(
    ("layer", "form", "tile", "threshold"),
    [
        # Runs of whole octets and not, padding on all sides, filters below, at and above a tile.
        (FIRST, (2, -255), (16, 32), True),
        (FIRST, (1, 0), (16, 16), False),
        (RUNS, (2, -255), (32, 32), True),
        (LARGE_DENSE, (-2, 100), (16, 32), False),
        (UNPADDED, (2, -255), (16, 32), True),
        (UNPADDED, (20000, 300001), (16, 16), False),
        pytest.param(STRIDED, (2, -255), (64, 32), True, marks=pytest.mark.slow),
        pytest.param(replace(WIDE, size=(4, 5)), (0, 5), (32, 64), False, marks=pytest.mark.slow),
    ],
)
def test_tensor_cores_multiply_bytes(
    layer: Layer, form: tuple[int, int], tile: tuple[int, int], threshold: bool
) -> None:
    check("conv2d_u8_mma", layer, form, tile, threshold)


@pytest.mark.slow
@pytest.mark.parametrize("filters", [1, 5, 31, 32, 64])
@pytest.mark.parametrize("channels", [1, 3, 4, 31, 32, 64])
@pytest.mark.parametrize("kernel", ["conv2d_u8_direct", "conv2d_u8_planes", "conv2d_u8_pairs"])
def test_all_channel_counts_are_exact(kernel: str, channels: int, filters: int) -> None:
    threshold = (channels + filters) % 2 == 1
    columns = 3 if kernel != "conv2d_u8_pairs" else min(3, 64 // channels)
    layer = Layer((6, 7), channels, filters, (3, columns), (1, 2), (1, 1), (1, 0, 2, 1), batch=2)
    check(kernel, layer, (2, -255), (2, 8), threshold)
