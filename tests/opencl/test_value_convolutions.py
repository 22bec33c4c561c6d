"""Float convolutions: results are the CPU's chain of fused multiply-adds, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_net import Net
from kernel_driver import opencl_queue
from value_launch import Sink, assert_layer
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
from phonebit.converter.ir import Conv2D, Window
from phonebit.converter.writer import to_bytes

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
    result = _runtime.Network(str(path), 1, "scalar").forward([x])[0]
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
    assert_layer("conv2d_f32_dot", Sink(EVEN, bits=True), main, FLOAT, [x, flat])
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
        "TILE_FILTERS": tile[1],
        "SPLIT": split,
    }
    # Sums of up to 600 products of about 1: the order of additions moves them by some 600 * 2^-24.
    inputs = [stored(x, bool(half)), weights.reshape(layer.out_c, -1)]
    assert_layer("conv2d_f32_dot", sink, main, defines, inputs, tolerance=1e-4)


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
