"""Every kernel on float values computes any part of its output, and writes nothing else."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest
from kernel_driver import pack_bits, run_kernel, run_pixels, work_sizes
from kernel_parts import Part, check_parts, random_parts
from test_value_convolutions import filters, mma_halves, mma_tune, tiled
from test_value_u8 import (
    affine,
    mma_bytes,
    operands,
    plane_weights,
    sign_weights,
    split,
)
from test_value_u8 import mma_tune as u8_mma_tune
from value_launch import Sink, assert_layer, guarded, launch
from value_reference import Layer, convolution, depthwise, integer_convolution, maximum_pool

RNG = np.random.default_rng(20261201)
WINDOWS = Layer((5, 5), 5, 45, (3, 2), (1, 2), pads=(1, 0, 1, 1), batch=2)
POINTS = Layer((4, 5), 36, 72, batch=2)
CHANNELS = Layer((5, 6), 37, 37, (3, 3), (2, 1), pads=(1, 1, 1, 1), batch=2)


def parts_of(kernel: str, layer: Layer, tune: dict[str, int]) -> list[Part]:
    return random_parts(kernel, tune, layer.pixels, layer.out_c)


def tile(pixels: int, filters: int, **more: int) -> dict[str, int]:
    return {"TILE_PIXELS": pixels, "TILE_FILTERS": filters, **more}


@pytest.mark.parametrize(
    ("kernel", "layer", "tune", "bits"),
    [
        ("conv2d_f32", WINDOWS, tile(2, 8), True),
        ("conv2d_f32", POINTS, tile(4, 16), True),
        ("conv2d_f32", POINTS, tile(1, 4), False),
        ("conv2d_f32_staged", POINTS, tile(4, 32, CHUNK=64, GROUP_SIZE=64), True),
        ("conv2d_f32_staged", POINTS, tile(8, 16, CHUNK=64, GROUP_SIZE=64), False),
        ("conv2d_f32_staged", POINTS, tile(4, 32, CHUNK=64, GROUP_SIZE=64, LANE_FILTERS=4), True),
        (
            "conv2d_f32_run",
            WINDOWS,
            {"TILE_PIXELS": 4, "GROUP_FILTERS": 32, "GROUP_SIZE": 32},
            True,
        ),
        ("conv2d_f32_mma", POINTS, {}, True),
        ("conv2d_f32_dot", WINDOWS, tile(2, 32, SPLIT=16), True),
        ("conv2d_f32_dot", POINTS, tile(1, 8, SPLIT=16), False),
        ("conv2d_f32_grouped", WINDOWS, {"TILE_FILTERS": 8}, True),
    ],
)
def test_float_convolutions(kernel: str, layer: Layer, tune: dict[str, int], bits: bool) -> None:
    x, weights = layer.random(RNG), filters(layer)
    is_mma = kernel == "conv2d_f32_mma"
    if is_mma:  # exact in any order; how it runs, the device says
        tune = mma_tune(16, 32)
        x, weights = np.round(8 * x) / 8, filters(layer, dyadic=True)
    main = convolution(layer, x, weights)
    scale, bias = RNG.standard_normal((2, layer.out_c), np.float32)
    sink = Sink(layer, bits=bits).scale_bias(scale, bias)
    sink.tensor("ADD", RNG.standard_normal(layer.output_shape, np.float32))
    is_dot = kernel == "conv2d_f32_dot"
    if is_dot:  # its sums are near: bits of them need not be those of the reference
        sink.threshold = np.full(layer.out_c, -np.inf, np.float32)
    if kernel in ("conv2d_f32", "conv2d_f32_staged", "conv2d_f32_run"):
        weights = tiled(weights)
    parts = parts_of(kernel, layer, tune)
    defines = {"INPUT_HALF": 0, **tune}
    held = mma_halves(weights, tune["TILE_FILTERS"]) if is_mma else weights
    assert_layer(kernel, sink, main, defines, [x, held], 1e-4 if is_dot else 0.0, parts)


@pytest.mark.parametrize("sink", ["threshold", "values", "values+bits"])
@pytest.mark.parametrize(
    ("kernel", "tune"),
    [
        ("conv2d_u8_direct", tile(2, 8)),
        ("conv2d_u8_direct", tile(1, 32)),
        ("conv2d_u8_planes", tile(2, 8)),
        ("conv2d_u8_planes", tile(1, 16)),
        ("conv2d_u8_pairs", tile(4, 16)),
        ("conv2d_u8_mma", {}),
    ],
)
def test_u8_convolutions(kernel: str, tune: dict[str, int], sink: str) -> None:
    layer = WINDOWS
    x, weights = operands(layer)
    form = (2, 0)  # without a mask after the planes, whose place depends on the part's end
    inputs = [x, pack_bits(weights)]
    if kernel == "conv2d_u8_mma":  # how it runs, the device says
        tune = u8_mma_tune(16, 32)
        inputs = [x, mma_bytes(layer, weights, tune["TILE_FILTERS"])]
    elif kernel == "conv2d_u8_planes":
        inputs = [split(layer, x, *form), plane_weights(layer, weights)]
    elif kernel == "conv2d_u8_pairs":
        inputs = [x, sign_weights(layer, weights)]
        form = (1, 0)
    acc = integer_convolution(layer, x, weights, *form)
    parts = parts_of(kernel, layer, tune)
    defines: dict[str, Any] = {**affine(*form), **tune}
    if sink != "threshold":
        epilogue = Sink(layer, values="values" in sink, bits="bits" in sink)
        table = np.zeros(1, np.int32)
        assert_layer(
            kernel, epilogue, acc.astype(np.float32), defines, [*inputs, table], parts=parts
        )
        return
    table = np.full(32 * ceil(layer.out_c / 32), 2**31 - 1, np.int32)
    table[: layer.out_c] = acc[-1, -1, 0]
    defines |= {"THRESHOLD": 1, "SINK_PARAMS": ", __global uint* bits", "SINK_ARGS": ", bits"}
    bits = guarded((*layer.output_shape[:3], ceil(layer.out_c / 32)), np.uint32)
    launch(kernel, layer, defines, [*inputs, table, bits], parts)


def test_planes_and_their_mask_of_a_part() -> None:
    layer, form = WINDOWS, (2, -255)
    x, weights = operands(layer)
    acc = integer_convolution(layer, x, weights, *form).reshape(layer.pixels, -1)
    words = ceil(layer.kernel[0] * layer.kernel[1] * layer.in_c / 32)
    defines = {**layer.defines(), **affine(*form)}
    sink = Sink(layer)
    macros = {**defines, **sink.defines()}
    table, constants, values = np.zeros(1, np.int32), np.zeros(1, np.float32), sink.outputs()[0]
    for first, end in ((0, 5), (3, 25), (26, layer.pixels)):
        planes = np.zeros(9 * end * words, np.uint32)
        sizes = work_sizes("split_planes", defines, end - first, layer.out_c)
        planes = run_kernel("split_planes", defines, *sizes, [first, end, x, planes])[-1]
        sizes = work_sizes("conv2d_u8_planes", macros, end - first, layer.out_c)
        arguments = [planes, plane_weights(layer, weights), table, constants, values]
        got = run_kernel("conv2d_u8_planes", macros, *sizes, [first, end, *arguments])[-1]
        whole = got[: acc.size].reshape(acc.shape)
        np.testing.assert_array_equal(whole[first:end], acc[first:end].astype(np.float32))


@pytest.mark.parametrize("bits", [True, False])
def test_layers_of_one_channel_each(bits: bool) -> None:
    x, weights = CHANNELS.random(RNG), RNG.standard_normal((3, 3, 37), np.float32)
    main = depthwise(CHANNELS, x, weights)
    parts = parts_of("depthwise_f32", CHANNELS, {})
    sink = Sink(CHANNELS, bits=bits)
    assert_layer("depthwise_f32", sink, main, {"INPUT_HALF": 0}, [x, weights], parts=parts)
    main = maximum_pool(CHANNELS, x)
    defines = {"INPUT_HALF": 0, "POOL_MAX": 1}
    assert_layer("pool", Sink(CHANNELS, bits=bits), main, defines, [x], parts=parts)


@pytest.mark.parametrize("kernel", ["elementwise", "concat", "pad", "select_channels", "softmax"])
def test_maps(kernel: str) -> None:
    channels = 37 if kernel in ("elementwise", "pad", "softmax") else 50
    pads = (1, 0, 2, 1) if kernel == "pad" else (0, 0, 0, 0)
    layer = Layer((5, 4), 37, channels, pads=pads, batch=2)
    x = layer.random(RNG)
    defines: dict[str, Any] = {
        "INPUT_HALF": 0, "VALUES_HALF": 0, "INPUT_KIND": 0, "CHANNEL_OFFSET": 11,
        "PAD_FLOAT": "-0.5f", "SOFTMAX_LOG": 0,
    }  # fmt: skip
    if kernel == "elementwise":
        parts = parts_of(kernel, layer, {})
        assert_layer(kernel, Sink(layer, bits=True), x, defines, [x], parts=parts)
        return
    indices = [RNG.integers(-1, 37, channels).astype(np.int32)] * (kernel == "select_channels")
    arguments = [x, *indices, guarded(layer.output_shape, np.float32)]
    macros = {**layer.defines(), **defines}
    whole = run_pixels(kernel, macros, layer.pixels, arguments)
    check_parts(kernel, macros, layer.pixels, arguments, whole, parts_of(kernel, layer, {}))
