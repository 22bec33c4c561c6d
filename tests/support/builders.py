"""Small engine graphs that together hold every op, step and threshold of the file format.

``PYTHONPATH=tests python -P -m support.builders FOLDER`` writes each as ``NAME.pbit`` together with
``NAME.npz``: seeded inputs (``in:<name>``) and the reference interpreter's outputs
(``out:<name>``), for runtimes to check themselves against. All numbers are exactly
representable, so every correct engine is equal to the last bit, except where a name ends in
``_tolerance``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, MultiplyTensor, PRelu
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.format.contents import FileContents
from phonebit.format.records import DataType
from phonebit.format.writer import file_bytes
from phonebit.images.preprocessing import Preprocessing, Resize
from phonebit.planner import ExecutionPlan, OutputPart, PlannedPart, Processor, with_plan
from support.engine_net import SAME3, Net, sign_of
from support.value_graphs import (
    averages,
    binary_planes,
    byte_weights,
    float_layers,
    half_weights,
    log_softmax,
    rounded,
    selected_channels,
    two_slopes,
)

Array = NDArray[Any]
CPU, GPU = Processor.CPU, Processor.GPU
PRODUCER = {"producer": "tests/builders.py"}


def binary_conv_threshold(cin: int, cout: int, pad_value: int, window: Window = SAME3) -> Graph:
    """f32 -> sign -> binary conv with integer thresholds -> binary conv, raw accumulators."""
    net = Net(f"binary_conv_threshold_{cin}_{cout}_pad{pad_value}")
    bits = sign_of(net, net.input("x", (9, 11, cin)))
    taps = window.kernel[0] * window.kernel[1] * cin
    epilogue = Epilogue([], net.thresholds(cout, max(2, int(taps**0.5))))
    first = BinaryConv2D(net.signs(cout, *window.kernel, cin), window, 1, pad_value, epilogue)
    inner = net.op("first", first, bits, value=False)
    second = BinaryConv2D(net.signs(5, 3, 3, cout), SAME3, 1, pad_value)
    return net.done(net.op("second", second, inner), inner)


def binary_conv_groups(groups: int, cin: int, cout: int) -> Graph:
    """Grouped, strided, dilated binary convolution with asymmetric padding."""
    net = Net(f"binary_conv_groups{groups}_{cin}_{cout}")
    bits = sign_of(net, net.input("x", (13, 12, cin)))
    window = Window((3, 2), (2, 1), (1, 2), (0, 1, 1, 0))
    weights = net.signs(cout, 3, 2, cin // groups)
    steps = [net.scale_bias(cout), Clamp(-4.0, 12.0)]
    op = BinaryConv2D(weights, window, groups, 0, Epilogue(list(steps), net.dyadic(cout)))
    return net.done(net.op("conv", op, bits), "conv/bits")


def binary_depthwise(channels: int, pad_value: int) -> Graph:
    """Binary depthwise convolution, thresholded, then raw."""
    net = Net(f"binary_depthwise_{channels}_pad{pad_value}")
    bits = sign_of(net, net.input("x", (8, 7, channels)))
    epilogue = Epilogue([], net.thresholds(channels, 3))
    op = BinaryDepthwiseConv2D(net.signs(channels, 3, 3, 1), SAME3, pad_value, epilogue)
    inner = net.op("first", op, bits, value=False)
    window = Window((3, 3), (2, 2), (1, 1), (0, 0, 1, 1))
    last = BinaryDepthwiseConv2D(net.signs(channels, 3, 3, 1), window, pad_value)
    return net.done(net.op("second", last, inner), inner)


def residual_block(channels: int) -> Graph:
    """Affine epilogues with shortcut and both outputs; a separate sign; gate; per-pixel PReLU."""
    net = Net(f"residual_block_{channels}")
    x = net.input("x", (6, 5, channels))
    bits = sign_of(net, x)
    weights = net.signs(channels, 3, 3, channels)
    slope = net.dyadic(channels)
    steps = [net.scale_bias(channels), AddTensor(1), PRelu(slope)]
    op = BinaryConv2D(weights, SAME3, 1, 1, Epilogue(list(steps), net.dyadic(channels)))
    first = net.op("block", op, bits, x)
    gate = net.op("gate", AveragePool2D(Window((6, 5), (1, 1))), first)
    gate = net.op("gate_round", Elementwise(Epilogue([Clamp(-2.0, 2.0)])), gate)
    slopes = net.dyadic(6 * 5 * channels, limit=2, step=0.5)
    steps = [MultiplyTensor(1), AddTensor(2), PRelu(slopes)]
    zeros = np.zeros(channels, np.float32)
    last = Elementwise(Epilogue(list(steps), zeros))
    value = net.op("last_tolerance", last, first, gate, x)
    return net.done(value, "last_tolerance/bits", "block/bits")


def pooled_bits(channels: int) -> Graph:
    """Max-pooling of bits with flipped channels, concatenation of bits, dense over the map."""
    net = Net(f"pooled_bits_{channels}")
    bits = sign_of(net, net.input("x", (7, 9, channels)))
    flip = net.rng.random(channels) < 0.5
    window = Window((3, 3), (2, 2), (1, 1), (1, 1, 1, 1))
    pooled = net.op("pool", MaxPool2D(window, flip), bits)
    other = net.op("pool2", MaxPool2D(Window((2, 2), (2, 2), pads=(0, 0, 1, 1))), bits)
    joined = net.op("concat", Concat(), pooled, other, pooled)
    height, width, total = net.graph.types[joined].shape
    weights = net.signs(10, height, width, total)
    dense = net.op("dense", BinaryConv2D(weights, Window((height, width))), joined)
    return net.done(dense, joined)


def u8_first_layer(cin: int, cout: int) -> Graph:
    """u8 image through an integer convolution (2x - 255), thresholded and as floats."""
    net = Net(f"u8_first_layer_{cin}_{cout}")
    x = net.input("image", (10, 9, cin), DataType.U8)
    window = Window((3, 3), (2, 2), pads=(0, 0, 1, 1))
    weights = net.signs(cout, 3, 3, cin).astype(np.float32)
    reach = net.thresholds(cout, 255 * 9)
    op = Conv2D(weights, window, 1, 0.0, None, 2, -255, Epilogue([], reach))
    bits = net.op("first", op, x, value=False)
    floats = Conv2D(weights, window, 1, 0.0, None, 1, 0, Epilogue([net.scale_bias(cout)]))
    value = net.op("first_float", floats, x)
    scaled = net.op("dequantize", Elementwise(Epilogue([net.scale_bias(cin)])), x)
    return net.done(
        net.op("second", BinaryConv2D(net.signs(4, 1, 1, cout), Window((1, 1))), bits),
        value,
        scaled,
        bits,
    )


def tiny_classifier() -> Graph:
    """A whole little network: u8 image to ten logits."""
    net = Net("tiny_classifier")
    x = net.input("image", (28, 28, 1), DataType.U8)
    first = Conv2D(
        net.signs(64, 3, 3, 1).astype(np.float32),
        SAME3,
        1,
        0.0,
        None,
        2,
        -255,
        Epilogue([], net.thresholds(64, 800)),
    )
    bits = net.op("conv1", first, x, value=False)
    bits = net.op("pool1", MaxPool2D(Window((2, 2), (2, 2))), bits)
    second = BinaryConv2D(
        net.signs(64, 3, 3, 64), SAME3, 1, 0, Epilogue([], net.thresholds(64, 24))
    )
    bits = net.op("conv2", second, bits, value=False)
    bits = net.op("pool2", MaxPool2D(Window((2, 2), (2, 2))), bits)
    dense = BinaryConv2D(
        net.signs(256, 7, 7, 64), Window((7, 7)), 1, 0, Epilogue([], net.thresholds(256, 56))
    )
    bits = net.op("dense1", dense, bits, value=False)
    steps = [net.scale_bias(10)]
    last = BinaryConv2D(net.signs(10, 1, 1, 256), Window((1, 1)), 1, 0, Epilogue(list(steps)))
    return net.done(net.op("logits", last, bits))


def described_classifier() -> Graph:
    """``tiny_classifier`` with class names and a rule for images: the optional sections."""
    graph = tiny_classifier()
    graph.labels = [f"class {index}" for index in range(10)]
    rule = Preprocessing((-1.0, 1.0), 0.125, 0.5, resize=Resize.LETTERBOX, fill_level=114)
    graph.preprocessing = dict.fromkeys(graph.inputs, rule)
    return graph


THRESHOLD_CASES = (
    (1, 1, 0), (3, 8, 0), (31, 32, 1), (32, 33, 0), (33, 31, -1), (64, 64, 0), (65, 7, 1),
    (128, 40, 0), (256, 64, 0), (300, 9, 0),
)  # fmt: skip


def all_graphs() -> Iterator[Graph]:
    """Every graph, at sizes around the word size of 32."""
    for cin, cout, pad in THRESHOLD_CASES:
        yield binary_conv_threshold(cin, cout, pad)
    for groups, cin, cout in ((2, 64, 34), (3, 93, 33), (8, 8, 16)):
        yield binary_conv_groups(groups, cin, cout)
    for channels, pad in ((31, 0), (32, 1), (33, -1), (70, 0)):
        yield binary_depthwise(channels, pad)
    yield from map(residual_block, (31, 32, 64))
    yield from map(pooled_bits, (5, 32, 33, 64))
    yield u8_first_layer(1, 33)
    yield u8_first_layer(3, 64)
    yield float_layers()
    yield averages()
    yield tiny_classifier()
    yield selected_channels()
    yield log_softmax()
    yield binary_planes()
    yield from map(two_slopes, (31, 32))
    yield from map(rounded, (31, 32))
    yield half_weights()
    yield byte_weights()


def engine_graphs() -> dict[str, Graph]:
    """All graphs by name."""
    return {graph.name: graph for graph in all_graphs()}


def integer_inputs(graph: Graph, batch: int = 2, seed: int = 0) -> dict[str, Array]:
    """Seeded inputs with small integers (exact zeros among them), for float and u8 inputs alike."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        if kind.dtype == DataType.U8:
            inputs[name] = rng.integers(0, 256, (batch, *kind.shape)).astype(np.uint8)
        else:
            inputs[name] = rng.integers(-3, 4, (batch, *kind.shape)).astype(np.float32)
    return inputs


def planned_classifier() -> FileContents:
    """The tiny classifier with plans for two devices: layers cut in both ways, and a chain."""
    cuts = [
        (0, GPU, 0, (0, 9, 0, 64)), (0, CPU, 0, (9, 28, 0, 64)), (1, CPU, 1, (0, 14, 0, 64)),
        (2, GPU, 2, (0, 14, 0, 40)), (2, CPU, 2, (0, 14, 40, 64)), (3, GPU, 3, (0, 6, 0, 64)),
        (3, CPU, 3, (6, 7, 0, 64)), (4, GPU, 4, (0, 1, 0, 248)), (4, CPU, 4, (0, 1, 248, 256)),
        (5, CPU, 5, (0, 1, 0, 10)),
    ]  # fmt: skip
    chain = [
        (0, GPU, 0, (0, 18, 0, 64)), (0, GPU, 1, (0, 9, 0, 64)), (0, GPU, 2, (0, 8, 0, 64)),
        (0, GPU, 3, (0, 4, 0, 64)), (0, CPU, 0, (14, 28, 0, 64)), (0, CPU, 1, (7, 14, 0, 64)),
        (0, CPU, 2, (8, 14, 0, 64)), (0, CPU, 3, (4, 7, 0, 64)), (1, GPU, 4, (0, 1, 0, 256)),
        (1, GPU, 5, (0, 1, 0, 10)),
    ]  # fmt: skip
    contents = to_contents(tiny_classifier(), PRODUCER)
    for device, method, predicted_ms, rows in (
        ("a phone", "user", 0.0, cuts),
        ("another phone", "codl", 0.125, chain),
    ):
        parts = (PlannedPart(*place, OutputPart(*part)) for *place, part in rows)
        contents = with_plan(contents, ExecutionPlan(device, method, predicted_ms, tuple(parts)))
    return contents


def write_all(folder: Path) -> None:
    """Writes every graph with its inputs and reference outputs into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in engine_graphs().items():
        write_one(folder, name, graph, to_bytes(graph, PRODUCER))
    planned = file_bytes(planned_classifier())
    write_one(folder, "planned_classifier", tiny_classifier(), planned)


def write_one(folder: Path, name: str, graph: Graph, content: bytes) -> None:
    """One file with its inputs and reference outputs."""
    (folder / f"{name}.pbit").write_bytes(content)
    inputs = integer_inputs(graph)
    outputs = run(graph, inputs)
    arrays = {f"in:{key}": value for key, value in inputs.items()}
    arrays |= {f"out:{key}": value for key, value in outputs.items()}
    np.savez_compressed(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
