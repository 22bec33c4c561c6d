"""Engine graphs that stress the executor, and how to run one."""

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
from phonebit.converter.ops.epilogue import AddTensor, Epilogue, MultiplyTensor
from phonebit.converter.writer import to_bytes
from support.engine_net import SAME3, Net, sign_of

Array = NDArray[Any]
ISAS = [name for name, _, supported in _runtime.isas() if supported]


def load(graph: Graph, folder: Path, threads: int = 1, isa: str = "scalar") -> _runtime.Network:
    """Writes the graph into ``folder`` and loads it."""
    path = folder / f"{graph.name}.pbit"
    path.write_bytes(to_bytes(graph))
    return _runtime.Network(str(path), threads, f"cpu:{isa}" if isa else "cpu")


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
