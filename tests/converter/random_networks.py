"""Random little binary networks in which all float32 arithmetic is exact.

Weights, scales and batch-norm parameters are small exactly representable fractions, variance +
epsilon is 1, inputs are small integers: source and engine graph must agree to the last bit, zeros
included.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Concat,
    Conv2D,
    Dequantize,
    Elementwise,
    Input,
    MaxPool2D,
    Pad,
    Reshape,
    Sign,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, EpilogueOp, PRelu, ScaleBias
from phonebit.format.records import DataType

EPSILON = 2.0**-10
CHANNELS = (1, 3, 8, 31, 32, 33)


@dataclass
class NetworkBuilder:
    """Adds blocks to a source graph; ``value`` is the current float (or bit) value."""

    rng: np.random.Generator
    graph: Graph
    value: str = ""
    saved: list[str] = field(default_factory=list)

    def add(self, op: Operator, *inputs: str, label: str | None = None) -> str:
        label = label or type(op).__name__.lower()
        name = f"{label}_{len(self.graph.nodes)}"
        self.graph.nodes.append(Node(name, op, list(inputs), value=name))
        self.graph.types = infer(self.graph)
        return name

    def step(self, step: EpilogueOp, *inputs: str) -> str:
        return self.add(Elementwise(Epilogue([step])), *inputs, label=type(step).__name__.lower())

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.graph.types[self.value].shape

    @property
    def is_bit(self) -> bool:
        return self.graph.types[self.value].dtype == DataType.BIT

    def dyadic(self, *shape: int, limit: int = 8, step: float = 0.25) -> NDArray[np.float32]:
        return (self.rng.integers(-limit, limit + 1, shape) * step).astype(np.float32)

    def sign_weights(self, *shape: int) -> NDArray[np.float32]:
        signs = self.rng.choice(np.array([-1, 1], np.float32), shape)
        style = self.rng.integers(3)
        if style == 0:
            return signs
        per_filter = self.rng.choice(np.array([0.25, 0.5, 1, 2], np.float32), (shape[0], 1, 1, 1))
        return signs * (np.float32(0.5) if style == 1 else per_filter)

    def window(self, kernel: tuple[int, int] | None = None) -> Window:
        height, width, _ = self.shape
        rng = self.rng
        maximum = (min(3, height), min(3, width))
        kernel = kernel or (
            int(rng.integers(1, maximum[0] + 1)),
            int(rng.integers(1, maximum[1] + 1)),
        )
        dilation = tuple(
            int(rng.integers(1, 3)) if (k - 1) * 2 < side else 1
            for k, side in zip(kernel, (height, width), strict=True)
        )
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = [int(rng.integers(0, spans[axis % 2])) for axis in range(4)]
        strides = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        return Window(kernel, strides, (dilation[0], dilation[1]), (*pads,))  # type: ignore[arg-type]

    # --- blocks ---------------------------------------------------------------------------------

    def sign(self) -> None:
        if not self.is_bit:
            self.value = self.add(Sign(), self.value)

    def binary_conv(self, same: bool = False, depthwise: bool = False) -> None:
        self.sign()
        channels = self.shape[2]
        window = Window((3, 3), pads=(1, 1, 1, 1)) if same else self.window()
        groups, cout = 1, channels
        if depthwise:
            groups = channels
        elif not same:
            groups = int(self.rng.choice([g for g in (1, 1, 2, 3, 31) if channels % g == 0]))
            cout = groups * int(self.rng.integers(1, 6))
            cout = int(self.rng.choice(CHANNELS)) if groups == 1 else cout
        weights = self.sign_weights(cout, *window.kernel, channels // groups)
        bias = self.dyadic(cout) if self.rng.random() < 0.3 else None
        pad_value = float(self.rng.choice([0, 0, 1, -1]))
        op = Conv2D(weights, window, groups, pad_value, bias)
        self.value = self.add(op, self.value)

    def depthwise_conv(self) -> None:
        self.binary_conv(depthwise=True)

    def padded_conv(self) -> None:
        self.sign()
        amount = tuple(int(x) for x in self.rng.integers(0, 3, 4))
        value = float(self.rng.choice([0, 1, -1]))
        self.value = self.add(Pad((amount[0], amount[1], amount[2], amount[3]), value), self.value)
        channels = self.shape[2]
        op = (
            Conv2D(self.sign_weights(5, 3, 3, channels), Window((3, 3)))
            if min(self.shape[:2]) >= 3
            else Conv2D(self.sign_weights(5, 1, 1, channels), Window((1, 1)))
        )
        self.value = self.add(op, self.value)

    def float_conv(self) -> None:
        channels = self.shape[2]
        weights = self.dyadic(4, 1, 1, channels, limit=2, step=0.5)
        self.value = self.add(Conv2D(weights, Window((1, 1)), bias=self.dyadic(4)), self.value)
        self.value = self.step(Clamp(-8.0, 8.0), self.value)

    def batch_norm(self) -> None:
        channels = self.shape[2]
        variance = np.full(channels, 1 - EPSILON, np.float32)
        gamma = self.dyadic(channels, limit=3, step=0.5)
        op = BatchNorm(gamma, self.dyadic(channels), self.dyadic(channels), variance, EPSILON)
        self.value = self.add(op, self.value)

    def relu(self) -> None:
        self.value = self.step(Clamp(0.0, float("inf")), self.value)

    def hard_tanh(self) -> None:
        self.value = self.step(Clamp(-1.0, 1.0), self.value)

    def prelu(self) -> None:
        slope = self.dyadic(self.shape[2], limit=2, step=0.5)
        self.value = self.step(PRelu(slope), self.value)

    def shift(self) -> None:
        channels = self.shape[2]
        self.value = self.step(
            ScaleBias(np.ones(channels, np.float32), self.dyadic(channels)), self.value
        )

    def max_pool(self) -> None:
        kernel = (min(2, self.shape[0]), min(2, self.shape[1]))
        self.value = self.add(MaxPool2D(Window(kernel, (2, 2))), self.value)

    def padded_max_pool(self) -> None:
        self.value = self.add(MaxPool2D(Window((3, 3), (2, 2), pads=(1, 1, 1, 1))), self.value)

    def average_pool(self) -> None:
        kernel = (min(2, self.shape[0]), min(2, self.shape[1]))
        self.value = self.add(AveragePool2D(Window(kernel, kernel)), self.value)

    def residual(self) -> None:
        shortcut = self.value
        self.binary_conv(same=True)
        self.batch_norm()
        first, second = (
            (self.value, shortcut) if self.rng.random() < 0.5 else (shortcut, self.value)
        )
        self.value = self.step(AddTensor(1), first, second)

    def dense_branch(self) -> None:
        before = self.value
        self.binary_conv(same=True)
        self.value = self.add(Concat(), before, self.value)

    def two_signs(self) -> None:
        """One value signed twice, for two convolutions whose results are joined."""
        shared, results = self.value, []
        for _ in range(2):
            self.value = shared
            if not self.is_bit:
                self.value = self.add(Sign(), shared)
            self.binary_conv(same=True)
            self.hard_tanh()
            results.append(self.value)
        self.value = self.add(Concat(), *results)

    def flatten_dense(self) -> None:
        if self.rng.random() < 0.5:
            self.sign()
        height, width, channels = self.shape
        count = height * width * channels
        self.value = self.add(Reshape((1, 1, count)), self.value)
        self.sign()
        weights = self.sign_weights(33, 1, 1, count)
        self.value = self.add(Conv2D(weights, Window((1, 1))), self.value)

    def output(self) -> None:
        if self.value not in (*self.graph.outputs, *self.graph.inputs):
            self.graph.outputs.append(self.value)


BLOCKS = {
    name: getattr(NetworkBuilder, name)
    for name in (
        "sign", "binary_conv", "depthwise_conv", "padded_conv", "float_conv", "batch_norm", "relu",
        "hard_tanh", "prelu", "shift", "max_pool", "padded_max_pool", "average_pool", "residual",
        "dense_branch", "two_signs", "flatten_dense", "output",
    )
}  # fmt: skip


def build(seed: int, blocks: list[str], u8: bool, channels: int, size: tuple[int, int]) -> Graph:
    """The network that a list of block names means."""
    builder = NetworkBuilder(np.random.default_rng(seed), Graph("random", [], {}, [], []))
    graph = builder.graph
    graph.types["x"] = TensorType((*size, channels), DataType.U8 if u8 else DataType.F32)
    graph.nodes.append(Node("x", Input(), [], value="x"))
    graph.inputs.append("x")
    builder.value = "x"
    if u8:
        # (2 u - 256) / 128: a range whose arithmetic is exact in float32.
        scale, offset = np.full(channels, 1 / 64, np.float32), np.full(channels, -2, np.float32)
        builder.value = builder.add(Dequantize(scale, offset, (2, -256, 128)), "x")
        window = Window((min(3, size[0]), min(3, size[1])), pads=(0, 0, 1, 1))
        if max(window.kernel) == 1 or min(window.kernel) == 1:
            window = Window(window.kernel)
        weights = builder.sign_weights(8, *window.kernel, channels)
        builder.value = builder.add(Conv2D(weights, window), builder.value)
    for block in blocks:
        BLOCKS[block](builder)
    builder.output()
    if not graph.outputs:
        builder.relu()
        builder.output()
    return graph


def networks() -> st.SearchStrategy[Graph]:
    """Strategy of random source graphs."""
    return st.builds(
        build,
        st.integers(0, 2**16),
        st.lists(st.sampled_from(sorted(BLOCKS)), min_size=1, max_size=9),
        st.booleans(),
        st.sampled_from(CHANNELS),
        st.tuples(st.integers(1, 6), st.integers(1, 6)),
    )
