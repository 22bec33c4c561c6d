"""Engine graphs that stress the executor, besides those of support/builders; and how to run one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit import _runtime
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import (
    BinaryConv2D,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Pad,
    Reshape,
    SelectChannels,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, MultiplyTensor
from phonebit.converter.writer import to_bytes
from phonebit.format.records import DataType
from support.builders import engine_graphs
from support.engine_net import SAME3, Net, sign_of

Array = NDArray[Any]
ISAS = [name for name, _, supported in _runtime.isas() if supported]


def load(graph: Graph, folder: Path, threads: int = 1, isa: str = "scalar") -> _runtime.Network:
    """Writes the graph into ``folder`` and loads it."""
    path = folder / f"{graph.name}.pbit"
    path.write_bytes(to_bytes(graph))
    return _runtime.Network(str(path), threads, f"cpu:{isa}" if isa else "cpu")


def assert_same(name: str, got: Array, expected: Array) -> None:
    """Equal to the last bit; values whose name says ``_tolerance`` went through exp or tanh."""
    assert got.dtype == expected.dtype, name
    if name.endswith("_tolerance"):
        # The engine's exponential is a polynomial, good to some units in the last place.
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-7, err_msg=name)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=name)


def grouped(kind: DataType, cin: int, cout: int, groups: int, threshold: bool) -> Graph:
    """Grouped convolution of u8, f32 or bits; thresholded, or through steps into value and bits."""
    net = Net(f"grouped_{kind.name}_{cin}_{cout}_{groups}_{int(threshold)}")
    x = net.input("x", (7, 6, cin), DataType.U8 if kind == DataType.U8 else DataType.F32)
    window = Window((3, 2), (1, 2), (2, 1), (2, 0, 1, 1))
    weights = net.signs(cout, 3, 2, cin // groups)
    integers = Epilogue([], net.thresholds(cout, 500 if kind == DataType.U8 else 3))
    steps = [net.scale_bias(cout), Clamp(-40.0, 40.0)]
    floats = Epilogue(list(steps), net.dyadic(cout))
    epilogue = integers if threshold else floats
    if kind == DataType.BIT:
        bits = sign_of(net, x)
        binary = BinaryConv2D(weights, window, groups, 1, epilogue)
        net.op("conv", binary, bits, value=not threshold)
    elif kind == DataType.U8:
        op = Conv2D(weights.astype(np.float32), window, groups, 0.0, None, 2, -255, epilogue)
        net.op("conv", op, x, value=not threshold)
    else:
        real = net.dyadic(cout, 3, 2, cin // groups, limit=4)
        net.op("conv", Conv2D(real, window, groups, epilogue=epilogue), x)
    return net.done(*(["conv/bits"] if threshold else ["conv", "conv/bits"]))


def depthwise_from_bits() -> Graph:
    """Float depthwise convolution whose weights are stored as bits."""
    net = Net("depthwise_bit_weights")
    x = net.input("x", (6, 7, 37))
    weights = net.signs(37, 3, 3, 1).astype(np.float32)
    return net.done(net.op("conv", Conv2D(weights, SAME3, 37), x))


def reshape_aliases() -> Graph:
    """Reshapes of inputs, outputs and inner values: some share memory, some must copy."""
    net = Net("reshape_aliases")
    x = net.input("x", (4, 3, 6))
    flat_input = net.op("flat_input", Reshape((1, 1, 72)), x)
    doubled = net.op("doubled", Elementwise(Epilogue([AddTensor(1)])), x, x)
    wide = net.op("wide", Reshape((1, 12, 6)), doubled)
    flat = net.op("flat", Reshape((1, 1, 72)), wide)
    narrow = net.op("narrow", Reshape((12, 1, 6)), doubled)
    back = net.op("back", Reshape((4, 3, 6)), flat)
    mixed = Elementwise(Epilogue([MultiplyTensor(1), AddTensor(2)]))
    last = net.op("last", mixed, back, x, doubled)
    return net.done(flat_input, flat, narrow, last, x)


def long_lives() -> Graph:
    """Values that are read long after they were made, so that their memory must not be reused."""
    net = Net("long_lives")
    x = net.input("x", (9, 8, 5))
    first = net.op("first", Conv2D(net.dyadic(5, 3, 3, 5, limit=2, step=0.5), SAME3), x)
    value = first
    for index in range(6):
        padded = net.op(f"pad{index}", Pad((1, 0, 0, 1), float(index)), value)
        value = net.op(f"pool{index}", MaxPool2D(Window((2, 2))), padded)
    joined = net.op("joined", Concat(), value, first, value, x)
    gate = net.input("gate", (1, 1, 20))
    last = net.op("gated", Elementwise(Epilogue([MultiplyTensor(1), AddTensor(1)])), joined, gate)
    return net.done(last)


def joined_bits(counts: tuple[int, ...]) -> Graph:
    """Concatenation of bit values of these channel counts, read by a convolution."""
    net = Net("joined_bits_" + "_".join(map(str, counts)))
    parts = [sign_of(net, net.input(f"x{i}", (5, 4, n)), f"s{i}") for i, n in enumerate(counts)]
    joined = net.op("joined", Concat(), *parts)
    weights = net.signs(9, 3, 3, sum(counts))
    return net.done(net.op("conv", BinaryConv2D(weights, SAME3), joined), joined)


def channel_shuffle(size: int = 40, channels: int = 24) -> Graph:
    """A shuffle of two groups and a split, on a map large enough to be cut for several threads."""
    net = Net(f"channel_shuffle_{size}_{channels}")
    x = net.input("x", (size, size, channels))
    order = np.arange(channels).reshape(2, -1).T.ravel().astype(np.int32)
    shuffled = net.op("shuffled", SelectChannels(order), x)
    half = np.arange(channels // 2, channels, dtype=np.int32)
    return net.done(shuffled, net.op("half", SelectChannels(half), shuffled))


def many_parts(pixels: int = 40, channels: int = 192) -> Graph:
    """Layers large enough to be cut for several threads, in both directions."""
    net = Net(f"many_parts_{pixels}_{channels}")
    x = net.input("x", (pixels, pixels, 64))
    bits = sign_of(net, x)
    epilogue = Epilogue([], net.thresholds(channels, 24))
    wide = BinaryConv2D(net.signs(channels, 3, 3, 64), SAME3, 1, 0, epilogue)
    bits = net.op("wide", wide, bits, value=False)
    pooled = net.op("pool", MaxPool2D(Window((4, 4), (4, 4))), bits)
    steps = [net.scale_bias(512)]
    epilogue = Epilogue(list(steps), net.dyadic(512))
    deep = BinaryConv2D(net.signs(512, 3, 3, channels), SAME3, 1, 0, epilogue)
    value = net.op("deep", deep, pooled)
    twice = Elementwise(Epilogue([AddTensor(1), net.scale_bias(512)]))
    added = net.op("added", twice, value, value)
    first = net.op("float", Conv2D(net.dyadic(96, 3, 3, 64, limit=2, step=0.5), SAME3), x)
    joined = net.op("joined", Concat(), first, x)
    groups = net.op("groups", Conv2D(net.dyadic(64, 3, 3, 40, limit=1), SAME3, 4), joined)
    return net.done(added, "deep/bits", groups, pooled)


def all_cases() -> dict[str, Graph]:
    """Every graph of this file and of tests/support/builders.py by name."""
    graphs = list(engine_graphs().values())
    for kind in (DataType.BIT, DataType.U8, DataType.F32):
        for cin, cout, groups in ((64, 64, 2), (66, 99, 3), (40, 20, 20), (8, 8, 8)):
            graphs.append(grouped(kind, cin, cout, groups, False))
            if kind != DataType.F32:
                graphs.append(grouped(kind, cin, cout, groups, True))
    graphs += [depthwise_from_bits(), reshape_aliases(), long_lives()]
    graphs += [joined_bits(counts) for counts in ((32, 64), (31, 1, 33), (5, 40, 32, 7), (1, 1, 1))]
    graphs += [channel_shuffle(), many_parts()]
    return {graph.name: graph for graph in graphs}
