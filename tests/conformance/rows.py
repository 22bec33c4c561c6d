"""One network per operator: its edge cases side by side, each a branch with inputs of its own.

There are those of the operators under their numbers' names, those of the epilogue
operations, windows drawn at random, and networks whose memory is shared in unusual ways. All
arithmetic is exact, except in values whose names end in ``_tolerance``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, Window
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
from phonebit.converter.ops.epilogue import (
    EPILOGUE_OPS,
    AddTensor,
    Clamp,
    Count,
    Epilogue,
    EpilogueOp,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Function, Reciprocal, Round
from phonebit.converter.ops.resize_bicubic import ResizeBicubic
from phonebit.converter.ops.resize_bilinear import Resize, ResizeBilinear
from phonebit.format.records import DataType, OpKind, StepKind
from support.engine_net import SAME3, Net, sign_of
from support.stress_graphs import channel_shuffle, long_lives, many_parts, reshape_aliases

Windows = Sequence[tuple[Window, tuple[int, int]]]
POINT: Final = Window((1, 1))
ODD: Final = Window((3, 2), (2, 1), (1, 2), (0, 1, 1, 0))
"""Strided, dilated, padded on some sides."""
CHANNELS: Final = (1, 3, 31, 32, 33, 64, 130)
BINARY: Final = [  # channels in and out, groups, window, padding's value, epilogue
    (1, 1, 1, SAME3, 0, "thresholds"),
    (3, 8, 1, ODD, 1, "both"),
    (31, 32, 1, SAME3, 1, "sums"),
    (32, 33, 1, Window((2, 2), (2, 2)), 0, "thresholds"),
    (33, 31, 1, Window((3, 3), pads=(2, 1, 1, 2)), -1, "both"),
    (64, 64, 1, SAME3, 0, "shortcut"),
    (65, 130, 1, POINT, 0, "thresholds"),
    (300, 9, 1, Window((7, 6)), 0, "sums"),
    (64, 34, 2, ODD, 0, "both"),
    (99, 12, 3, SAME3, -1, "thresholds"),
    (40, 20, 20, SAME3, 0, "both"),
    (66, 99, 3, SAME3, 1, "thresholds"),
]


def epilogue(net: Net, kind: str, channels: int, reach: int) -> Epilogue:
    """Integer thresholds, sums as they are, or values and bits through steps."""
    steps: list[EpilogueOp] = [net.scale_bias(channels), Clamp(-40.0, 40.0)]
    return {
        "thresholds": lambda: Epilogue([], net.thresholds(channels, reach)),
        "sums": Epilogue,
        "both": lambda: Epilogue(steps, net.dyadic(channels)),
        "shortcut": lambda: Epilogue(
            [*steps[:1], AddTensor(1), PRelu(net.dyadic(channels))], net.dyadic(channels)
        ),
    }[kind]()


def binary_conv2d(net: Net, rows: Sequence[tuple[Any, ...]] = BINARY) -> None:
    for i, (cin, cout, groups, window, pad_value, kind) in enumerate(rows):
        x = net.input(f"x{i}", (7, 6, cin))
        inputs = [sign_of(net, x, f"sign{i}"), *([x] if kind == "shortcut" else [])]
        weights = net.signs(cout, *window.kernel, cin // groups)
        sink = epilogue(net, kind, cout, int((weights[0].size) ** 0.5) + 1)
        op = BinaryConv2D(weights, window, groups, pad_value, sink)
        net.op(f"y{i}", op, *inputs, value=kind != "thresholds")


def binary_depthwise_conv2d(net: Net) -> None:
    kinds = ("thresholds", "both", "sums")
    for i, channels in enumerate(CHANNELS):
        window, kind = (SAME3, ODD)[i % 2], kinds[i % 3]
        bits = sign_of(net, net.input(f"x{i}", (8, 7, channels)), f"sign{i}")
        weights = net.signs(channels, *window.kernel, 1)
        op = BinaryDepthwiseConv2D(weights, window, i % 3 - 1, epilogue(net, kind, channels, 3))
        net.op(f"y{i}", op, bits, value=kind != "thresholds")
    # All of 16 taps differ, as many as a counter of four bits cannot hold.
    positive = net.op(
        "positive", Elementwise(Epilogue([Clamp(1.0, 2.0)])), net.input("x", (5, 6, 33))
    )
    weights = net.signs(33, 4, 4, 1)
    weights[:4] = -1
    op = BinaryDepthwiseConv2D(weights, Window((4, 4)), 0, epilogue(net, "thresholds", 33, 14))
    net.op("y", op, sign_of(net, positive, "ones"), value=False)


def conv2d(net: Net) -> None:
    rows = [(6, 33, 1, SAME3), (33, 12, 3, ODD), (37, 37, 37, SAME3), (70, 130, 1, POINT)]
    rows += [(40, 69, 1, Window((7, 6))), (1, 1, 1, ODD)]
    for i, (cin, cout, groups, window) in enumerate(rows):
        x = net.input(f"x{i}", (7, 6, cin))
        shape = (cout, *window.kernel, cin // groups)
        for name, dtype, limit in (("f32", DataType.F32, 4), ("f16", DataType.F16, 4)):
            sink = epilogue(net, "both" if i % 2 else "sums", cout, 3)
            weights = net.dyadic(*shape, limit=limit)
            op = Conv2D(weights, window, groups, epilogue=sink, stored_as=dtype)  # type: ignore[arg-type]
            net.op(f"{name}{i}", op, x)
        net.op(f"bits{i}", Conv2D(net.signs(*shape).astype(np.float32), window, groups), x)
        integers = net.rng.integers(-127, 128, shape).astype(np.float32)
        integers.reshape(-1)[:2] = 127
        op = Conv2D(integers, window, groups, stored_as=DataType.I8)
        net.op(f"i8{i}", op, x)
        signs = net.op(f"unpacked{i}", Elementwise(), sign_of(net, x, f"sign{i}"))
        net.op(f"i8_of_signs{i}", op, signs)


def conv2d_u8(net: Net) -> None:
    rows = [(1, 33, 1, SAME3, "thresholds"), (3, 64, 1, ODD, "both"), (66, 99, 3, ODD, "both")]
    rows += [(3, 8, 1, SAME3, "sums"), (8, 8, 8, ODD, "thresholds"), (64, 4, 2, SAME3, "both")]
    for i, (cin, cout, groups, window, kind) in enumerate(rows):
        x = net.input(f"x{i}", (10, 9, cin), DataType.U8)
        weights = net.signs(cout, *window.kernel, cin // groups).astype(np.float32)
        sink = epilogue(net, kind, cout, 255 * 9)
        op = Conv2D(weights, window, groups, 0.0, None, 1 + i % 2, -255 * (i % 2), sink)
        net.op(f"y{i}", op, x, value=kind != "thresholds")


def pools(pool: type[Any], net: Net) -> None:
    windows = (Window((2, 2), (2, 2)), Window((3, 2), (2, 1), (1, 2), (2, 1, 1, 2)), Window((7, 6)))
    for i, channels in enumerate(CHANNELS):
        x = net.input(f"x{i}", (7, 6, channels))
        sink = epilogue(net, "both", channels, 3) if i % 2 else Epilogue()
        net.op(f"y{i}", pool(windows[i % 3], epilogue=sink), x)
        if pool is MaxPool2D:
            flip = net.rng.random(channels) < 0.5 if i % 2 else None
            net.op(f"bits{i}", MaxPool2D(windows[i % 3], flip), sign_of(net, x, f"sign{i}"))


def elementwise(net: Net) -> None:
    for i, channels in enumerate(CHANNELS):
        shape = (4, 3, channels)
        x, level = net.input(f"x{i}", shape), net.input(f"level{i}", shape, DataType.U8)
        gate = net.input(f"gate{i}", (1, 1, channels))
        bits = sign_of(net, x, f"sign{i}")
        net.op(f"unpacked{i}", Elementwise(), bits)
        steps: list[EpilogueOp] = [net.scale_bias(channels)]
        net.op(f"levels{i}", Elementwise(Epilogue(steps, net.dyadic(channels))), level)
        steps = [MultiplyTensor(1), AddTensor(2), PRelu(net.dyadic(4 * 3 * channels, limit=2))]
        net.op(f"y{i}", Elementwise(Epilogue(steps, net.dyadic(channels))), bits, gate, x)


def concat(net: Net) -> None:
    for i, counts in enumerate(((32, 64), (31, 1, 33), (5, 40, 32, 7), (1, 1, 1))):
        parts = [net.input(f"x{i}_{n}", (5, 4, count)) for n, count in enumerate(counts)]
        net.op(f"y{i}", Concat(), *parts)
        net.op(f"bits{i}", Concat(), *(sign_of(net, part, f"{part}/sign") for part in parts))


def of_maps(ops: Callable[[int], Any], net: Net) -> None:
    """Operators of one map, for each number of channels."""
    for i, channels in enumerate(CHANNELS):
        op = ops(channels)
        soft = "_tolerance" if isinstance(op, Softmax) else ""
        net.op(f"y{i}{soft}", op, net.input(f"x{i}", (4, 3, channels)))


def softmax(log: bool, net: Net) -> None:
    of_maps(lambda channels: Softmax(log=log), net)
    # Values whose exponentials overflow unless the largest of all is subtracted.
    scale = ScaleBias(np.full(3, 128, np.float32), np.zeros(3, np.float32))
    far = net.op("far", Elementwise(Epilogue([scale])), net.input("x", (4, 3, 3)))
    net.op("y_tolerance", Softmax(log=log), far)


def selection(channels: int) -> SelectChannels:
    """Zeros, repeated channels, a slice, and channels back to front."""
    order = np.r_[-1, -1, np.arange(channels), channels - 1, 0, np.arange(channels)[::-1], -1]
    return SelectChannels(order.astype(np.int32))


def resize(kind: type[Resize], corners: bool, net: Net) -> None:
    sizes = [((5, 7), (10, 14)), ((5, 7), (3, 4)), ((4, 6), (9, 6)), ((1, 1), (3, 2))]
    for i, (old, new) in enumerate([*sizes, ((3, 2), (1, 1)), ((5, 7), (11, 8))]):
        x = net.input(f"x{i}", (*old, (5, 1, 4, 37)[i % 4]))
        net.op(f"y{i}", kind(new, corners), x)


def matmul(form: str, net: Net) -> None:
    for i, (rows, columns, depth, groups) in enumerate(
        [(3, 7, 33, 1), (2, 8, 40, 5), (6, 65, 64, 2)]
    ):
        a = net.input(f"a{i}", (rows, 1, groups * depth))
        plain = form == "plain"
        b_shape = (1, depth, groups * columns) if plain else (1, columns, groups * depth)
        b = net.input(f"b{i}", b_shape)
        if form == "bits":
            a, b = sign_of(net, a, f"p{i}"), sign_of(net, b, f"q{i}")
        net.op(f"y{i}", MatMul(groups, not plain), a, b)


def bit_planes(net: Net) -> None:
    for i, channels in enumerate(CHANNELS):
        count = 1 + i
        planes_of(net, f"{i}", count, channels, Clamp(0, 2.0**count - 1), Round())
    for count, channels in ((2, 32), (3, 96)):  # kernels of the CPU write planes of such counts
        levels = np.sort(net.dyadic(channels, 2**count - 1), axis=1)
        planes_of(net, f"_of_count{channels}", count, channels, Count(levels))


def planes_of(net: Net, name: str, count: int, channels: int, *steps: EpilogueOp) -> None:
    x = net.input(f"x{name}", (4, 3, channels))
    levels = Elementwise(Epilogue([net.scale_bias(channels), *steps]))
    level = net.op(f"level{name}", levels, x)
    planes = [f"plane{name}_{n}" for n in range(count)]
    net.graph.nodes.append(Node(f"planes{name}", BitPlanes(count), [level], planes=planes))
    net.graph.types = infer(net.graph)


def step_of(kind: StepKind, net: Net, channels: int) -> EpilogueOp:
    made: dict[StepKind, Callable[[], EpilogueOp]] = {
        StepKind.SCALE_BIAS: lambda: net.scale_bias(channels),
        StepKind.ADD: lambda: AddTensor(1),
        StepKind.MULTIPLY: lambda: MultiplyTensor(1),
        StepKind.CLAMP: lambda: Clamp(-1.5, 2.0),
        StepKind.PRELU: lambda: PRelu(net.dyadic(channels), net.dyadic(channels)),
        StepKind.COUNT: lambda: Count(np.sort(net.dyadic(channels, 3), axis=1)),
    }
    if kind in made:
        return made[kind]()
    function: Any = EPILOGUE_OPS[kind]
    return function.of_call({"approximate": "tanh" if kind == StepKind.GELU_TANH else "none"})


def epilogue_operation(kind: StepKind, net: Net) -> None:
    """After a map, and after a convolution's sums; functions of numbers for which they are some."""
    for i, channels in enumerate((1, 33)):
        x = net.input(f"x{i}", (4, 3, channels))
        step = step_of(kind, net, channels)
        inexact = isinstance(step, Function) and not isinstance(step, Round)
        suffix, before = "_tolerance" if inexact else "", list[EpilogueOp]()
        if kind in (StepKind.LOG, StepKind.SQRT) or isinstance(step, Reciprocal):
            before = [Clamp(0.5, 3.0)]
        others = [x] if kind in (StepKind.ADD, StepKind.MULTIPLY) else []
        half = ScaleBias(np.full(channels, 0.5, np.float32), np.zeros(channels, np.float32))
        sink = Epilogue([half, *before, step], None if inexact else net.dyadic(channels))
        net.op(f"y{i}{suffix}", Elementwise(sink), x, *others)
        weights = net.signs(channels, 3, 3, channels)
        bits = sign_of(net, x, f"sign{i}")
        net.op(f"conv{i}{suffix}", BinaryConv2D(weights, SAME3, 1, 1, sink), bits, *others)


def random_windows(rng: np.random.Generator, count: int) -> Windows:
    """Windows and maps that they fit, such that each has a tap inside the map."""
    result: list[tuple[Window, tuple[int, int]]] = []
    while len(result) < count:
        kernel, dilation, strides = rng.integers(1, [[6], [4], [4]], (3, 2)).tolist()
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = rng.integers(0, spans * 2).tolist()
        size = [
            max(1, span - pads[axis] - pads[axis + 2] + int(rng.integers(9)))
            for axis, span in enumerate(spans)
        ]
        window = Window(tuple(kernel), tuple(strides), tuple(dilation), tuple(pads))
        if all(keeps_a_tap(window, size, axis) for axis in (0, 1)):
            result.append((window, (size[0], size[1])))
    return result


def keeps_a_tap(window: Window, size: Sequence[int], axis: int) -> bool:
    """Whether there are windows, and each has a tap inside the map along one axis."""
    count = window.output_size(*size)[axis]
    starts = np.arange(max(0, count)) * window.strides[axis] - window.pads[axis]
    places = starts[:, None] + np.arange(window.kernel[axis]) * window.dilation[axis]
    return count > 0 and bool(((places >= 0) & (places < size[axis])).any(axis=1).all())


def random_convolutions(net: Net) -> None:
    for i, (window, size) in enumerate(random_windows(net.rng, 40)):
        cin, cout = (int(n) for n in net.rng.integers(1, 141, 2))
        bits = sign_of(net, net.input(f"x{i}", (*size, cin)), f"sign{i}")
        kind = ("thresholds", "both")[i % 2]
        weights = net.signs(cout, *window.kernel, cin)
        op = BinaryConv2D(weights, window, 1, i % 3 - 1, epilogue(net, kind, cout, 20))
        net.op(f"y{i}", op, bits, value=kind != "thresholds")


def random_pools(net: Net) -> None:
    for i, (window, size) in enumerate(random_windows(net.rng, 30)):
        channels = int(net.rng.integers(1, 141))
        x = net.input(f"x{i}", (*size, channels))
        flip = net.rng.random(channels) < 0.5
        net.op(f"y{i}", MaxPool2D(window), x)
        net.op(f"bits{i}", MaxPool2D(window, flip), sign_of(net, x, f"sign{i}"))


OPERATORS: Final[dict[OpKind, Sequence[Callable[[Net], None]]]] = {
    OpKind.BINARY_CONV2D: [binary_conv2d],
    OpKind.BINARY_DEPTHWISE_CONV2D: [binary_depthwise_conv2d],
    OpKind.CONV2D: [conv2d, conv2d_u8],
    OpKind.MAX_POOL2D: [partial(pools, MaxPool2D)],
    OpKind.AVERAGE_POOL2D: [partial(pools, AveragePool2D)],
    OpKind.ELEMENTWISE: [elementwise],
    OpKind.CONCAT: [concat],
    OpKind.PAD: [partial(of_maps, lambda channels: Pad((1, 0, 2, 3), -0.5))],
    OpKind.RESHAPE: [partial(of_maps, lambda channels: Reshape((3, 4, channels)))],
    OpKind.SOFTMAX: [partial(softmax, False)],
    OpKind.LOG_SOFTMAX: [partial(softmax, True)],
    OpKind.SELECT_CHANNELS: [partial(of_maps, selection)],
    OpKind.RESIZE_BILINEAR: [partial(resize, ResizeBilinear, False)],
    OpKind.RESIZE_BILINEAR_CORNERS: [partial(resize, ResizeBilinear, True)],
    OpKind.RESIZE_BICUBIC: [partial(resize, ResizeBicubic, False)],
    OpKind.RESIZE_BICUBIC_CORNERS: [partial(resize, ResizeBicubic, True)],
    OpKind.MATMUL: [partial(matmul, "plain")],
    OpKind.MATMUL_TRANSPOSED: [partial(matmul, "transposed"), partial(matmul, "bits")],
    OpKind.BIT_PLANES: [bit_planes],
}
OF_OPERATORS: Final[dict[str, Callable[[Net], None]]] = {
    kind.name.lower() + f"_{i}" * (i > 0): row
    for kind, rows in OPERATORS.items()
    for i, row in enumerate(rows)
}
CUT_BY_CHANNELS: Final = (
    "binary_conv2d", "conv2d", "conv2d_1", "max_pool2d", "average_pool2d", "elementwise",
)  # fmt: skip
ROWS: Final = {
    **OF_OPERATORS,
    **{f"step_{kind.name.lower()}": partial(epilogue_operation, kind) for kind in StepKind},
}
RANDOM: Final = {"random_convolutions": random_convolutions, "random_pools": random_pools}
MEMORY: Final = {
    graph.name: graph
    for graph in (
        reshape_aliases(),
        long_lives(),
        channel_shuffle(),
        many_parts(),
        many_parts(24, 96),
    )
}
"""Networks whose tensors share memory, or are cut for several threads."""


def network(name: str) -> Graph:
    """The network of a row; its outputs are what nothing reads."""
    if name in MEMORY:
        return MEMORY[name]
    net = Net(name)
    (ROWS | RANDOM)[name](net)
    graph = net.graph
    return net.done(*(value for value in graph.types if not graph.consumers(value)))
