"""The element-wise kernel, and with it every epilogue step, value storage and bit packing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_driver import opencl_queue, pack_bits
from value_launch import Sink, assert_layer, launch, run_layer
from value_reference import Floats, Layer, rounded, stored

from phonebit import _runtime
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.ops.epilogue.functions import (
    Elu,
    Exp,
    Gelu,
    Log,
    Mish,
    Reciprocal,
    Sigmoid,
    Softplus,
    Sqrt,
    Tanh,
)
from phonebit.converter.writer import to_bytes
from support.engine_net import Net

RNG = np.random.default_rng(20261120)
FLOAT = {"INPUT_KIND": 0, "INPUT_HALF": 0}
FUNCTIONS = {
    "sigmoid": Sigmoid(),
    "hyperbolic_tangent": Tanh(),
    "gelu": Gelu(),
    "gelu_tanh": Gelu(approximate=True),
    "exponential": Exp(),
    "logarithm": Log(),
    "square_root": Sqrt(),
    "reciprocal": Reciprocal(),
    "elu": Elu(),
    "softplus": Softplus(),
    "mish": Mish(),
}


def division_tolerance(half: bool = False) -> float:
    """0 where the device divides as the CPU does; else some units in the last place."""
    config = opencl_queue().device.single_fp_config
    import pyopencl as cl

    if config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        return 0.0
    return 2e-3 if half else 2e-6


def cpu_function(name: str, x: Floats, folder: Path) -> Floats:
    """A step on the CPU backend; x is (batch, height, width, channels), infinities among them."""
    net = Net("function")
    value = net.input("x", x.shape[1:])
    graph = net.done(net.op("f", Elementwise(Epilogue([FUNCTIONS[name]])), value))
    path = folder / f"{name}.pbit"
    path.write_bytes(to_bytes(graph))
    (result,) = _runtime.Network(str(path), 1, "cpu:scalar").run_op(0, [x]).values()
    return result


@pytest.mark.parametrize(
    ("channels", "tile"), [(1, 8), (5, 16), (31, 32), (33, 8), (64, 32), (68, 16)]
)
def test_floats_become_the_same_floats_and_packed_signs(channels: int, tile: int) -> None:
    layer = Layer((3, 7), channels, channels, batch=3)
    x = layer.random(RNG)
    sink = Sink(layer, bits=True)
    assert_layer("elementwise", sink, x, {**FLOAT, "TILE_CHANNELS": tile}, [x])


@pytest.mark.parametrize("channels", [3, 32, 65])
@pytest.mark.parametrize("kind", [1, 2])
def test_bytes_and_bits_become_floats(kind: int, channels: int) -> None:
    layer = Layer((5, 3), channels, channels, batch=2)
    shape = (2, 5, 3, channels)
    if kind == 1:
        memory = RNG.integers(0, 256, shape).astype(np.uint8)
        main = memory.astype(np.float32)
    else:
        main = RNG.choice(np.array([-1, 1], np.float32), shape)
        memory = pack_bits(main)
    scale, bias = RNG.standard_normal((2, channels), np.float32)
    sink = Sink(layer, bits=True).scale_bias(scale, bias)
    assert_layer("elementwise", sink, main, {"INPUT_KIND": kind}, [memory])


@pytest.mark.parametrize("channels", [6, 8])
def test_every_arithmetic_step_is_one_rounding_a_sign(channels: int) -> None:
    layer = Layer((4, 5), channels, channels, batch=2)
    x = layer.random(RNG)
    scale, bias, slope, positive, limits = RNG.standard_normal((5, channels), np.float32)
    same, each = layer.random(RNG), RNG.standard_normal((2, 1, 1, channels), np.float32)
    slopes, positives = RNG.standard_normal((2, 4, 5, channels), np.float32)
    sink = Sink(layer, bits=True, threshold=limits)
    sink.scale_bias(scale, bias).tensor("ADD", same).tensor("MULTIPLY", each, half=True).prelu(
        slope
    )
    sink.tensor("MULTIPLY", same, half=True).tensor("ADD", each).prelu(slopes)
    sink.prelu(slope, positive).prelu(slopes, positives).clamp(-1.25, np.inf)
    assert_layer("elementwise", sink, x, FLOAT, [x])


def test_a_clamp_treats_zeros_and_nan_as_the_cpu_does() -> None:
    layer = Layer((1, 1), 8, 8)
    x = np.array([-0.0, 0.0, np.nan, -1.0, 7.0, np.inf, -np.inf, 6.0], np.float32).reshape(
        1, 1, 1, 8
    )
    sink = Sink(layer).clamp(0.0, 6.0)
    expected = np.array([0, 0, 0, 0, 6, 6, 0, 6], np.float32)
    sink.actions = [lambda v: expected.reshape(v.shape)]
    assert_layer("elementwise", sink, x, FLOAT, [x])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_bits_of_the_cpu(name: str, tmp_path: Path) -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, 0.625, -0.625, 88.7, -104.0, 1e-38], np.float32)
    count = 4000 if "Oclgrind" not in opencl_queue().device.platform.name else 100
    spread = RNG.standard_normal(count, np.float32) * np.float32(10.0) ** RNG.integers(-6, 3, count)
    for channels in (1, 4):
        x = np.concatenate([spread, special]).astype(np.float32)
        x = x[: x.size // channels * channels].reshape(1, 1, -1, channels)
        layer = Layer(x.shape[1:3], channels, channels)
        sink = Sink(layer).function(name, lambda v: cpu_function(name, v, tmp_path))
        assert_layer("elementwise", sink, x, FLOAT, [x], division_tolerance())


@pytest.mark.parametrize("channels", [1, 4])
def test_rounding_gives_even_numbers_for_halves_and_keeps_the_sign_of_zero(channels: int) -> None:
    special = [0.0, -0.0, 0.49999997, -0.5, 8388607.5, 8388609.0, -3e9, np.inf, -np.inf]
    x = np.array([*np.arange(-8, 8.5, 0.5), *special, 1e-40, -1e30], np.float32)
    x = x[: x.size // channels * channels].reshape(1, 1, -1, channels)
    sink = Sink(Layer(x.shape[1:3], channels, channels)).function("nearest_integer", np.rint)
    assert_layer("elementwise", sink, x, FLOAT, [x])
    (result,) = run_layer("elementwise", sink, FLOAT, [x])
    np.testing.assert_array_equal(np.signbit(result), np.signbit(x))


@pytest.mark.parametrize("channels", [3, 64])
def test_halves_are_rounded_once_when_stored(channels: int) -> None:
    layer = Layer((3, 5), channels, channels, batch=2)
    x = layer.random(RNG)
    scale, bias = RNG.standard_normal((2, channels), np.float32)
    sink = Sink(layer, bits=True, half=True).scale_bias(scale, bias)
    main = rounded(x, True)
    assert_layer("elementwise", sink, main, {"INPUT_KIND": 0, "INPUT_HALF": 1}, [stored(x, True)])


@pytest.mark.parametrize("channels", [5, 8])
def test_values_may_take_the_place_of_the_tensor_that_is_added(channels: int) -> None:
    queue = opencl_queue()
    import pyopencl as cl

    layer = Layer((4, 4), channels, channels, batch=2)
    x, shortcut = layer.random(RNG), layer.random(RNG)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    memory = cl.Buffer(queue.context, flags, hostbuf=shortcut)
    sink = Sink(layer).tensor("ADD", shortcut)
    constants = np.zeros(1, np.float32)
    launch("elementwise", layer, {**sink.defines(), **FLOAT}, [x, constants, memory, memory])
    result = np.empty_like(shortcut)
    cl.enqueue_copy(queue, result, memory)
    np.testing.assert_array_equal(result, x + shortcut)
