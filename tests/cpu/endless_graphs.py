"""Each operator in a shape that its author did not have in mind: as much work as possible between
two of the borders where work is usually cut, output rows, output pixels and blocks of channels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phonebit.converter.ir import Graph, Node, Operator, Shape, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    BitPlanes,
    Concat,
    Conv2D,
    Elementwise,
    MatMul,
    MaxPool2D,
    Pad,
    Reshape,
    SelectChannels,
    Softmax,
)
from phonebit.converter.ops.epilogue import Clamp, Count, Epilogue
from phonebit.converter.ops.resize_bicubic import ResizeBicubic
from phonebit.converter.ops.resize_bilinear import ResizeBilinear
from phonebit.format.records import DataType
from support.engine_net import Net, sign_of

ROW: Shape = (1, 30_000, 64)
"""A map of one row."""
PIXEL: Shape = (1, 1, 1 << 20)
"""A map of one pixel."""
LONG = Window((1, 129))
WHOLE = Window((1000, 1000))
"""A window nearly as large as a map of ``WIDE``."""
WIDE: Shape = (1060, 1060, 1)


def one(name: str, shape: Shape, op: Operator, dtype: DataType = DataType.F32) -> Graph:
    net = Net(name)
    return net.done(net.op("op", op, net.input("x", shape, dtype)))


def of_bits(name: str, shape: Shape, make: Callable[[Net], Operator]) -> Graph:
    net = Net(name)
    return net.done(net.op("op", make(net), sign_of(net, net.input("x", shape))))


def bit_planes() -> Graph:
    """Thresholds, and bits of numbers, of many elements."""
    net = Net("bit_planes")
    x = net.input("x", (1, 1 << 14, 64))
    count = Count(np.zeros((64, 255), np.float32))
    level = net.op("level", Elementwise(Epilogue([count])), x)
    net.graph.nodes.append(Node("bits", BitPlanes(1), [level], planes=["bit0"]))
    return net.done("bit0")


def chained(name: str, shape: Shape, *ops: Operator) -> Graph:
    """Operators that move memory, some times."""
    net = Net(name)
    value = net.input("x", shape)
    for index in range(4):
        for part, op in enumerate(ops):
            name = f"op{index}_{part}"
            net.graph.nodes.append(Node(name, op, [value], value=name))
            value = name
    return net.done(value)


def concatenated() -> Graph:
    net = Net("concat")
    value = net.input("x", (1, 1, 1 << 16))
    for index in range(4):
        value = net.op(f"op{index}", Concat(), value, value)
    return net.done(value)


def product(name: str, op: MatMul, made: Callable[[Net, str], str] | None = None) -> Graph:
    """Of a map with itself; the last one multiplies bits."""
    net = Net(name)
    value = net.input("x", (1, 2048, 2048))
    value = made(net, value) if made else value
    return net.done(net.op("op", op, value, value))


def real_weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.full(shape, 0.5, np.float32)


def endless_graphs() -> list[Graph]:
    signs = real_weights(64, 1, 129, 64)
    steps = [Clamp(float(-index - 1), float(index + 1)) for index in range(100)]
    last = PIXEL[2] - 1
    return [
        of_bits(
            "binary_conv2d",
            (1, 30_000, 512),
            lambda net: BinaryConv2D(net.signs(64, 1, 129, 512), LONG),
        ),
        of_bits(
            "binary_depthwise_conv2d",
            WIDE,
            lambda net: BinaryDepthwiseConv2D(net.signs(1, 1000, 1000, 1), WHOLE),
        ),
        one("conv2d_f32", ROW, Conv2D(signs, LONG)),
        one("conv2d_u8", ROW, Conv2D(np.sign(signs), LONG), DataType.U8),
        one("conv2d_groups", ROW, Conv2D(signs[..., :32], LONG, groups=2)),
        one(
            "conv2d_dense", (1, 1, 1 << 16), Conv2D(real_weights(64, 1, 1, 1 << 16), Window((1, 1)))
        ),
        one(
            "conv2d_depthwise",
            (*WIDE[:2], 4),
            Conv2D(real_weights(4, 1000, 1000, 1), WHOLE, groups=4),
        ),
        one("max_pool2d", WIDE, MaxPool2D(WHOLE)),
        of_bits("max_pool2d_bits", WIDE, lambda _: MaxPool2D(WHOLE)),
        one("max_pool2d_one_window", (4097, 4097, 1), MaxPool2D(Window((4096, 4096)))),
        one("average_pool2d", WIDE, AveragePool2D(WHOLE)),
        one("elementwise", PIXEL, Elementwise(Epilogue(steps))),
        bit_planes(),
        concatenated(),
        chained("pad", (1, 1 << 19, 8), Pad((0, 1, 0, 1), 2.0)),
        chained("reshape", PIXEL, Reshape((1, 1 << 20, 1)), Reshape(PIXEL)),
        chained("softmax", PIXEL, Softmax()),
        chained("log_softmax", PIXEL, Softmax(log=True)),
        chained("select_channels", PIXEL, SelectChannels(np.arange(last, -1, -1, dtype=np.int32))),
        product("matmul", MatMul()),
        product("matmul_transposed", MatMul(transposed=True)),
        product("matmul_bits", MatMul(transposed=True), sign_of),
        chained("resize_bilinear", (1, 1 << 18, 16), ResizeBilinear((1, 1 << 18))),
        chained("resize_bilinear_corners", (1, 1 << 18, 16), ResizeBilinear((1, 1 << 18), True)),
        chained("resize_bicubic", (1, 1 << 18, 16), ResizeBicubic((1, 1 << 18))),
        chained("resize_bicubic_corners", (1, 1 << 18, 16), ResizeBicubic((1, 1 << 18), True)),
    ]
