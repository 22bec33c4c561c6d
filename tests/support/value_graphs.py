"""Engine graphs of layers that compute with float values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phonebit.converter.ir import FloatArray, Graph, Node, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BinaryConv2D,
    BitPlanes,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Pad,
    Reshape,
    SelectChannels,
    Softmax,
)
from phonebit.converter.ops.epilogue import (
    AddTensor,
    Clamp,
    Count,
    Epilogue,
    EpilogueOp,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Round, Sigmoid, Tanh
from phonebit.format.records import DataType
from support.engine_net import SAME3, Net, sign_of


def float_layers() -> Graph:
    """Float convolutions (f32 and one-bit weights, groups), pad, reshape, concat, pools."""
    net = Net("float_layers")
    x = net.input("x", (12, 10, 6))
    padded = net.op("pad", Pad((1, 0, 2, 1), 0.5), x)
    conv = Conv2D(net.dyadic(8, 3, 3, 3, limit=4), SAME3, 2, 0.0, None)
    first = net.op("conv", conv, padded)
    depthwise = Conv2D(net.dyadic(16, 3, 3, 1, limit=4), Window((3, 3), (2, 2)), 8)
    second = net.op("depthwise", depthwise, first)
    signs = net.signs(33, 3, 2, 16).astype(np.float32)
    third = net.op("bit_weights", Conv2D(signs, Window((3, 2)), 1), second)
    pool = Window((2, 2), (1, 1), (1, 1), (0, 0, 1, 1))
    maximum = net.op("max_pool", MaxPool2D(pool, None, Epilogue([Clamp(0.0, float("inf"))])), third)
    mean = net.op("average_pool", AveragePool2D(pool), third)
    joined = net.op("concat", Concat(), maximum, mean)
    height, width, channels = net.graph.types[joined].shape
    flat = net.op("flatten", Reshape((1, 1, height * width * channels)), joined)
    weights = net.dyadic(10, 1, 1, height * width * channels, limit=2, step=2.0**-6)
    logits = net.op("logits", Conv2D(weights, Window((1, 1))), flat)
    soft = net.op("softmax_tolerance", Softmax(), logits)
    wave = net.op("wave_tolerance", Elementwise(Epilogue([Tanh(), Sigmoid()])), logits)
    return net.done(logits, flat, soft, wave)


def averages() -> Graph:
    """Windows of several blocks of taps, whose sums depend on the order of additions."""
    net = Net("averages")
    x = net.input("x", (23, 19, 33))
    tenth, bias = np.full(33, 0.1, np.float32), np.full(33, 1000.3, np.float32)
    scaled = net.op("scaled", Elementwise(Epilogue([ScaleBias(tenth, bias)])), x)
    padded = Window((5, 6), (2, 3), (1, 2), (2, 5, 2, 5))
    some = net.op("padded", AveragePool2D(padded), scaled)
    row = net.op("row", AveragePool2D(Window((1, 19), (1, 19))), scaled)
    whole = net.op("whole", AveragePool2D(Window((23, 19), (23, 19))), scaled)
    return net.done(some, row, whole)


def half_weights() -> Graph:
    """Weights of 16 bits in every kind of float convolution; those of the first are subnormal."""
    net = Net("half_weights")

    def conv(weights: FloatArray, window: Window, groups: int = 1, *steps: EpilogueOp) -> Conv2D:
        epilogue = Epilogue(list(steps))
        return Conv2D(weights, window, groups, epilogue=epilogue, stored_as=DataType.F16)

    x = net.input("x", (9, 8, 6))
    strided = Window((3, 3), (2, 2), pads=(1, 1, 0, 0))
    larger = ScaleBias(np.full(33, 2.0**21, np.float32), np.zeros(33, np.float32))
    tiny = net.dyadic(33, 3, 3, 6, limit=4, step=2.0**-24)
    first = net.op("plain", conv(tiny, strided, 1, larger), x)
    grouped = conv(net.dyadic(12, 3, 3, 11, limit=4), SAME3, 3)
    second = net.op("grouped", grouped, first)
    depthwise = conv(net.dyadic(12, 3, 3, 1, limit=4), SAME3, 12)
    third = net.op("depthwise", depthwise, second)
    height, width, channels = net.graph.types[third].shape
    weights = net.dyadic(69, height, width, channels, limit=2, step=0.5)
    dense = conv(weights, Window((height, width)), 1, net.scale_bias(69))
    dense = replace(dense, epilogue=replace(dense.epilogue, threshold=net.dyadic(69)))
    return net.done(net.op("dense", dense, third), "dense/bits", second)


def byte_weights() -> Graph:
    """Weights of 8 bits in every kind of float convolution, over values and over bits as values."""
    net = Net("byte_weights")

    def conv(shape: tuple[int, ...], window: Window, groups: int = 1, *steps: EpilogueOp) -> Conv2D:
        weights = net.rng.integers(-127, 128, shape).astype(np.float32)
        weights.reshape(-1)[:2] = 127, -127
        epilogue = Epilogue(list(steps))
        return Conv2D(weights, window, groups, epilogue=epilogue, stored_as=DataType.I8)

    def smaller(channels: int) -> ScaleBias:
        return ScaleBias(np.full(channels, 2.0**-9, np.float32), net.dyadic(channels))

    x = net.input("x", (9, 8, 6))
    strided = Window((3, 3), (2, 2), pads=(1, 1, 0, 0))
    first = net.op("plain", conv((33, 3, 3, 6), strided, 1, smaller(33), Round()), x)
    grouped = conv((12, 3, 3, 11), SAME3, 3, smaller(12), Round())
    second = net.op("grouped", grouped, first)
    third = net.op("depthwise", conv((12, 3, 3, 1), SAME3, 12, smaller(12)), second)
    floats = net.op("unpacked", Elementwise(), sign_of(net, third))
    padded = net.op("padded", Pad((1, 0, 0, 2), 2.0), floats)
    fourth = net.op("of_signs", conv((37, 2, 3, 12), Window((2, 3)), 1, smaller(37)), padded)
    height, width, channels = net.graph.types[floats].shape
    flat = net.op("flat", Reshape((1, 1, height * width * channels)), floats)
    dense = conv((69, 1, 1, height * width * channels), Window((1, 1)), 1, smaller(69))
    dense = replace(dense, epilogue=replace(dense.epilogue, threshold=net.dyadic(69)))
    return net.done(net.op("dense", dense, flat), "dense/bits", second, fourth)


def selected_channels() -> Graph:
    """Slices, a shuffle, repeated channels and channels of zeros, of floats and unpacked bits."""
    net = Net("selected_channels")
    x = net.input("x", (5, 4, 37))
    indices = np.r_[[-1, -1], np.arange(3, 20), [36, 0, 0, 36, -1], np.arange(30, 37), [5, 4, 3]]
    mixed = net.op("mixed", SelectChannels(indices.astype(np.int32)), x)
    halves = np.arange(indices.size // 2 * 2).reshape(2, -1).T.ravel().astype(np.int32)
    shuffled = net.op("shuffled", SelectChannels(halves), mixed)
    one = net.op("one", SelectChannels(np.array([7], np.int32)), shuffled)
    floats = net.op("unpacked", Elementwise(), sign_of(net, mixed))
    wide = np.r_[np.arange(20), np.arange(-1, 33)].astype(np.int32)
    return net.done(mixed, one, net.op("wide", SelectChannels(wide), floats))


def binary_planes() -> Graph:
    """Levels of two bits as two planes, and the weighted sum of their convolutions."""
    net = Net("binary_planes_33")
    x = net.input("x", (5, 4, 33))
    thresholds = np.sort(net.dyadic(33, 3, limit=16), axis=1)
    level = net.op("level", Elementwise(Epilogue([Count(thresholds)])), x)
    net.graph.nodes.append(Node("bits", BitPlanes(2), [level], planes=["bit0", "bit1"]))
    signs = net.signs(40, 3, 3, 33)
    low = net.op("low", BinaryConv2D(signs, SAME3, 1, -1), "bit0")
    steps: list[EpilogueOp] = [ScaleBias(np.full(40, 2, np.float32), np.zeros(40, np.float32))]
    high = BinaryConv2D(signs, SAME3, 1, -1, Epilogue([*steps, AddTensor(1)]))
    return net.done(net.op("sum", high, "bit1", low), level)


def log_softmax() -> Graph:
    """Logarithms of softmax, on fewer and on more channels than a vector has lanes."""
    net = Net("log_softmax")
    x = net.input("x", (3, 2, 37))
    few = net.op("few", SelectChannels(np.arange(5, dtype=np.int32)), x)
    return net.done(
        net.op("log_tolerance", Softmax(log=True), x),
        net.op("few_log_tolerance", Softmax(log=True), few),
    )


def two_slopes(channels: int) -> Graph:
    """PReLU that also scales values >= 0: slopes per channel, then per element, then on bits."""
    net = Net(f"two_slopes_{channels}")
    x = net.input("x", (4, 3, channels))
    first = PRelu(net.dyadic(channels), net.dyadic(channels))
    size = 4 * 3 * channels
    last = PRelu(net.dyadic(size, limit=2, step=0.5), net.dyadic(size, limit=2, step=0.5))
    epilogue = Epilogue([first, net.scale_bias(channels), last], net.dyadic(channels))
    value = net.op("value", Elementwise(epilogue), x)
    weights = net.signs(channels, 3, 3, channels)
    again = BinaryConv2D(weights, SAME3, 1, 1, Epilogue([first]))
    return net.done(value, "value/bits", net.op("conv", again, "value/bits"))


def rounded(channels: int) -> Graph:
    """8-bit levels as a quantizer makes them, halves among them; rounded sums of bits."""
    net = Net(f"rounded_{channels}")
    x = net.input("x", (4, 3, channels))
    eighth = ScaleBias(np.full(channels, 1 / 8, np.float32), net.dyadic(channels, limit=64))
    steps = [net.scale_bias(channels), Round(), Clamp(-5.0, 4.0), eighth]
    value = net.op("levels", Elementwise(Epilogue(steps, net.dyadic(channels))), x)
    weights = net.signs(channels, 3, 3, channels)
    halves = ScaleBias(np.full(channels, 0.5, np.float32), np.zeros(channels, np.float32))
    sums = BinaryConv2D(weights, SAME3, 1, 1, Epilogue([halves, Round()]))
    return net.done(value, "levels/bits", net.op("conv", sums, "levels/bits"))
