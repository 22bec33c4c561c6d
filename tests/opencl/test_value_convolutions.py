"""Float convolutions: results are the CPU's chain of fused multiply-adds, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_driver import opencl_queue
from numpy.typing import NDArray
from test_binary_mma import has_tensor_cores
from value_launch import Sink, assert_layer, run_layer
from value_reference import (
    Floats,
    Layer,
    convolution,
    depthwise,
    fused_multiply_add,
    rounded,
    stored,
)

from phonebit import _runtime
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.writer import to_bytes
from support.engine_net import Net

RNG = np.random.default_rng(20261121)
FLOAT = {"INPUT_HALF": 0}
EVEN = Layer((6, 7), 8, 16, (3, 3), pads=(1, 1, 1, 1))
ODD = Layer((7, 6), 5, 33, (3, 2), (2, 1), (1, 2), (0, 2, 2, 1), batch=3)
POINT = Layer((3, 5), 4, 3, batch=2)


def filters(layer: Layer, dyadic: bool = False) -> Floats:
    shape = (layer.out_c, *layer.kernel, layer.in_c // layer.groups)
    if dyadic:
        return (RNG.integers(-16, 17, shape) / 8).astype(np.float32)
    return RNG.standard_normal(shape, np.float32)


def filters_of_group(layer: Layer, wanted: int, bits: bool) -> int:
    """A group of conv2d_f32_staged and of conv2d_f32_dot owns whole words of packed bits."""
    return 32 if bits and wanted < layer.out_c else wanted


def tiled(weights: Floats) -> Floats:
    """[taps * in_c][filters, to a multiple of 4]."""
    flat = weights.reshape(weights.shape[0], -1).T
    return np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4)))


def test_the_reference_rounds_once() -> None:
    # Rounded to float64, these are halfway between two float32: a second rounding goes astray.
    a, b, c = (np.array([v], np.float32) for v in (1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-60)))
    assert fused_multiply_add(a, b, c)[0] == np.float32(1 + 2.0**-11)
    assert fused_multiply_add(a, b, -c)[0] == np.float32(1 + 2.0**-11 + 2.0**-23)


def test_the_reference_is_the_cpu_backend(tmp_path: Path) -> None:
    net = Net("convolution")
    weights, x = filters(ODD), ODD.random(RNG)
    value = net.input("x", (*ODD.size, ODD.in_c))
    window = Window(ODD.kernel, ODD.stride, ODD.dilation, ODD.pads)
    path = tmp_path / "convolution.pbit"
    path.write_bytes(to_bytes(net.done(net.op("conv", Conv2D(weights, window), value))))
    result = _runtime.Network(str(path), 1, "cpu:scalar").forward([x])[0]
    np.testing.assert_array_equal(result, convolution(ODD, x, weights))


@pytest.mark.parametrize(
    ("layer", "tile", "bits"),
    [
        (EVEN, (4, 8), True),
        (EVEN, (1, 16), False),
        (EVEN, (8, 4), False),
        (ODD, (2, 16), True),
        (ODD, (4, 4), False),
        (POINT, (4, 8), True),
        (Layer((1, 1), 65, 31, batch=3), (2, 8), True),
        (Layer((5, 5), 3, 4, (5, 5)), (1, 8), False),
        (Layer((9, 4), 1, 65, (2, 2), (1, 3), pads=(1, 0, 0, 1)), (4, 16), True),
    ],
)
def test_convolutions_have_the_bits_of_the_chain(
    layer: Layer, tile: tuple[int, int], bits: bool
) -> None:
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, x, weights)
    sink = Sink(layer, bits=bits, threshold=main[0, 0, 0] if bits else None)
    defines = {**FLOAT, "TILE_PIXELS": tile[0], "TILE_FILTERS": tile[1]}
    assert_layer("conv2d_f32", sink, main, defines, [x, tiled(weights)])


def test_dyadic_convolutions_are_exact_in_any_order() -> None:
    x, weights = np.round(8 * EVEN.random(RNG)) / 8, filters(EVEN, dyadic=True)
    main = convolution(EVEN, x, weights)
    sink = Sink(EVEN, bits=True)
    assert_layer("conv2d_f32", sink, main, {**FLOAT, "FUSED": 0}, [x, tiled(weights)])
    flat = weights.reshape(EVEN.out_c, -1)
    defines = {**FLOAT, "TILE_FILTERS": 16}
    assert_layer("conv2d_f32_dot", Sink(EVEN, bits=True), main, defines, [x, flat])
    assert_layer("conv2d_f32_grouped", Sink(EVEN, bits=True), main, FLOAT, [x, weights])


@pytest.mark.parametrize("layer", [EVEN, ODD])
def test_halves_are_only_storage(layer: Layer) -> None:
    x, weights = layer.random(RNG), filters(layer)
    shortcut = RNG.standard_normal(layer.output_shape, np.float32)
    scale, bias = RNG.standard_normal((2, layer.out_c), np.float32)
    main = convolution(layer, rounded(x, True), weights)
    sink = (
        Sink(layer, bits=True, half=True).scale_bias(scale, bias).tensor("ADD", shortcut, half=True)
    )
    assert_layer("conv2d_f32", sink, main, {"INPUT_HALF": 1}, [stored(x, True), tiled(weights)])


def test_half_arithmetic_is_near_the_chain() -> None:
    if "cl_khr_fp16" not in opencl_queue().device.extensions:
        pytest.skip("the device lacks cl_khr_fp16")
    layer = Layer((5, 6), 36, 20, (3, 3), (1, 2), pads=(1, 0, 1, 1), batch=2)
    for half in (0, 1):
        x, weights = rounded(layer.random(RNG), True), rounded(filters(layer), True)
        main = convolution(layer, x, weights)
        # Chains of 16 products of about 1, each rounded to 11 bits, 27 of them.
        inputs = [stored(x, bool(half)), tiled(weights).astype(np.float16)]
        defines = {"INPUT_HALF": half, "ARITHMETIC": 1}
        assert_layer("conv2d_f32", Sink(layer), main, defines, inputs, tolerance=0.15)


@pytest.mark.parametrize(
    ("layer", "tile", "bits"),
    [
        (Layer((4, 5), 12, 24, (3, 3), (2, 1), (1, 1), (1, 1, 1, 1), 4, 2), 8, True),
        (Layer((5, 4), 15, 9, (2, 3), (1, 1), (2, 1), (2, 0, 1, 2), 3), 16, True),
        (Layer((3, 3), 6, 18, (3, 3), pads=(1, 1, 1, 1), groups=6), 4, False),
        (Layer((3, 3), 7, 5, batch=2), 8, False),
    ],
)
def test_grouped_convolutions_have_the_bits_of_the_chain(
    layer: Layer, tile: int, bits: bool
) -> None:
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, x, weights)
    defines = {**FLOAT, "TILE_FILTERS": tile}
    assert_layer("conv2d_f32_grouped", Sink(layer, bits=bits), main, defines, [x, weights])


@pytest.mark.parametrize(
    ("channels", "tile", "bits", "half"),
    [(1, 8, True, 0), (33, 16, True, 0), (64, 8, True, 1), (12, 4, False, 0), (30, 4, False, 1)],
)
def test_depthwise_convolutions_have_the_bits_of_the_chain(
    channels: int, tile: int, bits: bool, half: int
) -> None:
    layer = Layer((5, 6), channels, channels, (3, 2), (1, 2), (2, 1), (2, 0, 1, 1), channels, 2)
    x = layer.random(RNG)
    weights = RNG.standard_normal((3, 2, channels), np.float32)
    main = depthwise(layer, rounded(x, bool(half)), weights)
    sink = Sink(layer, bits=bits, half=bool(half))
    defines = {"INPUT_HALF": half, "TILE_CHANNELS": tile}
    assert_layer("depthwise_f32", sink, main, defines, [stored(x, bool(half)), weights])


@pytest.mark.parametrize(
    ("layer", "tile", "split", "bits", "half"),
    [
        (Layer((4, 5), 64, 125, batch=2), (2, 8), 16, False, 0),
        (Layer((4, 4), 36, 33, (4, 4), batch=3), (1, 16), 64, True, 0),
        (Layer((4, 4), 5, 9, (4, 4)), (1, 8), 32, True, 1),
        (EVEN, (4, 8), 128, False, 1),
        (Layer((5, 6), 7, 10, (3, 3), (1, 2)), (4, 8), 16, True, 0),
    ],
)
def test_split_sums_are_near_the_chain(
    layer: Layer, tile: tuple[int, int], split: int, bits: bool, half: int
) -> None:
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, rounded(x, bool(half)), weights)
    # Bits may differ where a sum is next to its threshold; at infinity none is.
    limits = np.where(np.arange(layer.out_c) % 3 == 0, np.inf, -np.inf).astype(np.float32)
    sink = Sink(layer, bits=bits, threshold=limits if bits else None)
    defines = {
        "INPUT_HALF": half,
        "TILE_PIXELS": tile[0],
        "TILE_FILTERS": filters_of_group(layer, tile[1], bits),
        "SPLIT": split,
    }
    # Sums of up to 600 products of about 1: the order of additions moves them by some 600 * 2^-24.
    inputs = [stored(x, bool(half)), weights.reshape(layer.out_c, -1)]
    assert_layer("conv2d_f32_dot", sink, main, defines, inputs, tolerance=1e-4)


@pytest.mark.parametrize(
    ("layer", "tile", "bits", "half"),
    [
        (Layer((5, 19), 3, 45, (3, 7), (2, 2), pads=(1, 3, 1, 3), batch=2), (8, 32), True, 0),
        (EVEN, (4, 16), False, 1),
        (Layer((7, 5), 2, 70, (3, 2), (1, 3), (2, 1), (0, 2, 2, 1)), (4, 64), True, 0),
        # A row of several groups, the last of which has pixels beyond it; a group of one warp.
        (Layer((5, 75), 3, 66, (3, 5), (2, 2), pads=(1, 2, 1, 2), batch=2), (7, 64, 32), True, 1),
    ],
)
def test_runs_of_the_map_have_the_bits_of_the_chain(
    layer: Layer, tile: tuple[int, ...], bits: bool, half: int
) -> None:
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, rounded(x, bool(half)), weights)
    sink = Sink(layer, bits=bits, threshold=main[0, 0, 0] if bits else None)
    names = ("TILE_PIXELS", "GROUP_FILTERS", "GROUP_SIZE")
    defines = {"INPUT_HALF": half} | dict(zip(names, tile, strict=False))
    assert_layer("conv2d_f32_run", sink, main, defines, [stored(x, bool(half)), tiled(weights)])


def mma_halves(weights: Floats, tile_filters: int, split: int = 1) -> NDArray[np.float16]:
    """Weights in the order of ``@weights mma of halves``."""
    flat = weights.reshape(weights.shape[0], -1)
    filters, window = flat.shape
    tiles, chunks = -(-filters // tile_filters), -(-window // (32 * split)) * split
    padded = np.zeros((tiles * tile_filters, chunks * 32), np.float16)
    padded[:filters, :window] = flat
    # tile, quarter q, block, i; chunk, part, element
    axes = padded.reshape(tiles, 4, tile_filters // 8, 2, chunks, 4, 8)
    # tile, chunk, block, column 2 q + i, part, element
    return np.ascontiguousarray(axes.transpose(0, 4, 2, 1, 3, 5, 6))


def mma_tune(pixels: int, filters: int, warps: int = 1, split: int = 1) -> dict[str, int]:
    tune = {"TILE_PIXELS": pixels, "TILE_FILTERS": filters, "WARPS": warps, "SPLIT": split}
    return tune if has_tensor_cores() else tune | {"PHONEBIT_EMULATE_MMA": 1}


@pytest.mark.parametrize(
    ("layer", "tune", "bits", "half"),
    [
        # Places of one element and of eight; chunks that are full and not; padding.
        (Layer((9, 7), 3, 45, (5, 5), (2, 1), pads=(2, 2, 1, 2), batch=2), (16, 32), True, 0),
        (Layer((5, 6), 24, 33, (3, 2), (1, 2), (2, 1), (2, 0, 1, 1)), (16, 32, 2), True, 1),
        (Layer((4, 5), 5, 15, (2, 2)), (16, 16), False, 1),
        pytest.param(Layer((6, 6), 32, 70), (32, 64), True, 0, marks=pytest.mark.slow),
        # A window that warps share: evenly, not, fewer chunks than warps.
        (Layer((3, 7), 64, 40), (16, 32, 2, 2), True, 1),
        (Layer((1, 1), 100, 17, batch=3), (16, 16, 1, 8), False, 0),
    ],
)
def test_tensor_cores_add_products_of_halves(
    layer: Layer, tune: tuple[int, ...], bits: bool, half: int
) -> None:
    # Exact in any order: multiples of 1/64.
    x, weights = np.round(8 * layer.random(RNG)) / 8, filters(layer, dyadic=True)
    main = convolution(layer, x, weights)
    sink = Sink(layer, bits=bits, half=bool(half), threshold=main[0, 0, 0] if bits else None)
    sink.tensor("ADD", np.round(RNG.standard_normal(layer.output_shape, np.float32)))
    inputs = [stored(x, bool(half)), mma_halves(weights, tune[1], *tune[3:])]
    defines = {"INPUT_HALF": half} | mma_tune(*tune)
    assert_layer("conv2d_f32_mma", sink, main, defines, inputs)


@pytest.mark.parametrize("in_c", [3, 16])
def test_tensor_cores_round_inputs_to_the_nearest_half(in_c: int) -> None:
    layer = Layer((6, 5), in_c, 20, (3, 3), pads=(1, 1, 1, 1))
    x, weights = layer.random(RNG), rounded(filters(layer), True)
    main = convolution(layer, rounded(x, True), weights)
    # Sums of up to 144 products of about 1: the order of additions moves them by some 144 * 2^-24.
    inputs = [x, mma_halves(weights, 16)]
    defines = FLOAT | mma_tune(16, 16)
    assert_layer("conv2d_f32_mma", Sink(layer), main, defines, inputs, tolerance=1e-4)


def staged(
    tile: tuple[int, int], chunk: int, group: int, lane: int = 1, ahead: int = 1
) -> dict[str, int]:
    names = ("TILE_PIXELS", "TILE_FILTERS", "CHUNK", "GROUP_SIZE", "LANE_FILTERS", "AHEAD")
    return {"INPUT_HALF": 0} | dict(zip(names, (*tile, chunk, group, lane, ahead), strict=True))


@pytest.mark.parametrize(
    ("layer", "defines", "bits", "half"),
    [
        # Pixels, filters and K below, at and above a tile and a chunk.
        (Layer((3, 5), 63, 15, batch=1), staged((16, 16), 64, 128), True, 0),
        (Layer((4, 4), 64, 16, batch=1), staged((16, 16), 64, 128), True, 1),
        (Layer((17, 1), 65, 17, batch=1), staged((16, 16), 64, 128), True, 0),
        (Layer((1, 1), 127, 7, batch=3), staged((4, 8), 128, 128), True, 1),
        (Layer((1, 1), 128, 8, batch=4), staged((4, 8), 128, 128), True, 0),
        (Layer((1, 1), 129, 9, batch=5), staged((4, 8), 64, 128), True, 1),
        (Layer((1, 1), 520, 33), staged((1, 32), 64, 64), True, 0),
        # More results than lanes, and far fewer.
        (Layer((5, 7), 36, 65, batch=2), staged((16, 32), 64, 64), True, 1),
        (Layer((1, 1), 600, 10), staged((1, 8), 256, 256), False, 0),
        # Four filters per lane; the widest tile has no room for bits in 32 KB of local memory.
        (Layer((5, 7), 36, 68, batch=2), staged((32, 32), 64, 64, 4), False, 0),
        (Layer((5, 7), 36, 68, batch=2), staged((16, 32), 64, 64, 4), True, 0),
        (Layer((3, 5), 66, 39, batch=2), staged((16, 16), 64, 64, 4), True, 1),
        (Layer((5, 7), 65, 36, batch=2), staged((64, 32), 32, 128, 4), True, 0),
        # More chunks of weights on their way than a window has, as many, fewer.
        (Layer((1, 1), 100, 8, batch=2), staged((4, 8), 64, 64, ahead=4), True, 0),
        (Layer((1, 1), 128, 12, batch=3), staged((4, 8), 64, 64, ahead=2), True, 1),
        (Layer((1, 1), 300, 33, batch=9), staged((16, 16), 32, 64, ahead=4), True, 0),
        # Strides, whole maps, rows of a map.
        (Layer((7, 8), 5, 12, (1, 1), (3, 2), batch=2), staged((4, 8), 64, 64), False, 0),
        (Layer((4, 5), 13, 31, (4, 5), batch=3), staged((8, 16), 64, 64), True, 1),
        (Layer((9, 4), 6, 20, (3, 4), (2, 1)), staged((8, 8), 64, 64), True, 1),
    ],
)
def test_staged_chains_are_the_same_chains(
    layer: Layer, defines: dict[str, int], bits: bool, half: int
) -> None:
    wanted = {"INPUT_HALF": half}
    wanted["TILE_FILTERS"] = filters_of_group(layer, defines["TILE_FILTERS"], bits)
    x, weights = rounded(layer.random(RNG), bool(half)), filters(layer)
    main = convolution(layer, x, weights)
    shortcut = RNG.standard_normal(layer.output_shape, np.float32)
    sink = Sink(layer, bits=bits, half=bool(half), threshold=main[0, 0, 0] if bits else None)
    inputs = [stored(x, bool(half)), tiled(weights)]
    assert_layer("conv2d_f32_staged", sink, main, defines | wanted, inputs)
    sink = Sink(layer, bits=bits).tensor("ADD", shortcut)
    assert_layer("conv2d_f32_staged", sink, main, defines | wanted, inputs)


def test_staged_bits_need_no_values() -> None:
    layer = Layer((3, 3), 70, 40, batch=2)
    x, weights = layer.random(RNG), filters(layer)
    sink = Sink(layer, values=False, bits=True)
    main = convolution(layer, x, weights)
    assert_layer("conv2d_f32_staged", sink, main, staged((4, 32), 64, 64), [x, tiled(weights)])


@pytest.mark.parametrize("in_c", [66, 67])
def test_staged_chains_keep_the_sign_of_zero(in_c: int) -> None:
    # The last product underflows to -0; one more, of zeros after the window, would make it +0.
    layer = Layer((1, 1), in_c, 9)
    x, weights = np.zeros((1, 1, 1, in_c), np.float32), np.zeros((9, 1, 1, in_c), np.float32)
    x[..., -1], weights[..., -1] = np.float32(1e-30), np.float32(-1e-30)
    values = run_layer("conv2d_f32_staged", Sink(layer), FLOAT, [x, tiled(weights)])[0]
    assert np.signbit(values).all() and not values.any()


STAGED_TILES = [(pixels, filters) for pixels in (1, 4, 8, 16) for filters in (8, 16, 32)]
CHUNKS, GROUPS = (64, 128, 256), (64, 128, 256)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile", "chunk", "group"),
    [
        *((tile, CHUNKS[i % 3], GROUPS[i // 3 % 3]) for i, tile in enumerate(STAGED_TILES)),
        *(((4, 8), chunk, group) for chunk in CHUNKS for group in GROUPS),
    ],
)
def test_every_staged_tile_chunk_and_group_has_the_bits_of_the_chain(
    tile: tuple[int, int], chunk: int, group: int
) -> None:
    tile_pixels, tile_filters = tile
    layer = Layer((3, 7), 257, 65)
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, x, weights)
    defines = staged(tile, chunk, group)
    needed = 8 * chunk * (tile_pixels + tile_filters) + 4 * tile_pixels * tile_filters
    if needed > opencl_queue().device.local_mem_size:
        pytest.skip(f"the device lacks {needed} bytes of local memory")
    sink = Sink(layer, bits=tile_filters == 32)
    assert_layer("conv2d_f32_staged", sink, main, defines, [x, tiled(weights)])


@pytest.mark.slow
@pytest.mark.parametrize("tile_filters", [4, 8, 16])
@pytest.mark.parametrize("tile_pixels", [1, 2, 4, 8])
@pytest.mark.parametrize("channels", [(3, 3), (4, 31), (32, 32), (33, 64), (64, 65)])
def test_every_tile_has_the_bits_of_the_chain(
    channels: tuple[int, int], tile_pixels: int, tile_filters: int
) -> None:
    layer = Layer((9, 10), *channels, (3, 3), (1, 1), (2, 1), (2, 1, 1, 0), batch=3)
    x, weights = layer.random(RNG), filters(layer)
    main = convolution(layer, x, weights)
    defines = {**FLOAT, "TILE_PIXELS": tile_pixels, "TILE_FILTERS": tile_filters}
    sink = Sink(layer, bits=tile_filters >= 8)
    assert_layer("conv2d_f32", sink, main, defines, [x, tiled(weights)])
