"""Source graphs with seeded weights, layer by layer: a network once as BNN, once as its float twin.

A definition is a function that calls the methods below in the order of the layers. In the form
"binary" a convolution reads signs and holds weights of -1 and +1; in the form "float", its twin,
it reads what the activation leaves of real numbers and holds real weights. Both have the same
layers and parameter counts. No framework is needed: the graph is what an importer would give.

Numbers are drawn as training leaves them: a batch normalization's statistics follow the layer in
front of it (a sum of K products of signs has the variance K), and shifts make about half of the
bits behind a max-pool +1; otherwise deep layers would see constant maps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from phonebit.converter.infer import infer
from phonebit.converter.ir import (
    AddTensor,
    AveragePool2D,
    BatchNorm,
    Clamp,
    Concat,
    Conv2D,
    Elementwise,
    Epilogue,
    FloatArray,
    Graph,
    Input,
    MaxPool2D,
    Node,
    Operator,
    PRelu,
    Shape,
    Sign,
    Softmax,
    Step,
    TensorType,
    Window,
)
from phonebit.format.records import DataType

Form = Literal["binary", "float"]
Activation = Literal["relu", "leaky_relu"]

PICTURE: Final = "picture"
LEAKY_SLOPE: Final = 0.1
"""Of darknet's leaky ReLU."""
EPSILON: Final = 1e-3
NEGATIVE_GAMMAS: Final = 0.1
"""Share of batch normalization scales below zero, about what training leaves."""


@dataclass
class NetworkBuilder:
    """Collects the layers of one network; see the module.

    Attributes:
        name: the network's name.
        form: whether convolutions are binary or those of the float twin.
        activation: of the float twin, where the binary network has signs.
        seed: of all weights and statistics.
    """

    name: str
    form: Form
    activation: Activation = "relu"
    seed: int = 1
    graph: Graph = field(init=False)
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.graph = Graph(self.name, [], {}, [], [])
        self.rng = np.random.default_rng(self.seed)

    @property
    def binary(self) -> bool:
        """Whether this is the binary network, not its float twin."""
        return self.form == "binary"

    def shape(self, value: str) -> Shape:
        """(height, width, channels) of a value."""
        return self.graph.types[value].shape

    def picture(self, height: int, width: int, channels: int = 3) -> str:
        """The input, real values of -1..1 (level u stands for (2 u - 255) / 255)."""
        self.graph.inputs.append(PICTURE)
        self.graph.types[PICTURE] = TensorType((height, width, channels), DataType.F32)
        return self._node(PICTURE, Input())

    def conv(
        self,
        name: str,
        x: str,
        filters: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int | tuple[int, int, int, int] = 0,
        groups: int = 1,
        real: bool = False,
        bias: bool = False,
    ) -> str:
        """Convolution; in the binary network its weights are -1 and +1, unless ``real``.

        Args:
            name: of the layer.
            x: what it reads.
            filters: output channels.
            kernel: height and width of the window.
            stride: in both directions.
            padding: zeros on all sides, or (top, left, bottom, right).
            groups: of channels.
            real: real weights in the binary network, too.
            bias: whether it has one.

        Returns:
            The name of the result.
        """
        channels = self.shape(x)[2] // groups
        window = Window((kernel, kernel), (stride, stride), pads=_four(padding))
        shape = (filters, kernel, kernel, channels)
        weights = self._signs(shape) if self.binary and not real else self._reals(shape)
        offsets = self._normal(filters, 0.0, 0.05) if bias else None
        return self._node(name, Conv2D(weights, window, groups, bias=offsets), x)

    def dense(
        self, name: str, x: str, units: int, *, real: bool = False, bias: bool = False
    ) -> str:
        """Dense layer: a convolution whose window is the whole map; see ``conv``."""
        height, width, channels = self.shape(x)
        shape = (units, height, width, channels)
        weights = self._signs(shape) if self.binary and not real else self._reals(shape)
        offsets = self._normal(units, 0.0, 0.05) if bias else None
        return self._node(name, Conv2D(weights, Window((height, width)), bias=offsets), x)

    def batch_norm(self, name: str, x: str, *, pool: int = 1) -> str:
        """Batch normalization behind the convolution or dense layer ``x``.

        Args:
            name: of the layer.
            x: name of the convolution.
            pool: taps of the max-pool behind it, 1: none. Half of the maxima then are above 0.
        """
        conv = self.graph.producer(x).op
        assert isinstance(conv, Conv2D), f"{x} is no convolution"
        channels = self.shape(x)[2]
        variance = np.square(conv.weights).sum(axis=(1, 2, 3)) * self._input_power(x)
        gamma = self.rng.uniform(0.5, 1.5, channels)
        gamma[self.rng.random(channels) < NEGATIVE_GAMMAS] *= -1
        shift = -_median_of_maximum(pool) * np.abs(gamma)
        op = BatchNorm(
            gamma.astype(np.float32),
            (shift + self.rng.normal(0, 0.1, channels)).astype(np.float32),
            self._normal(channels, 0.0, 0.1) * np.sqrt(variance).astype(np.float32),
            (variance * self.rng.uniform(0.8, 1.25, channels)).astype(np.float32),
            EPSILON,
        )
        return self._node(name, op, x)

    def activate(self, name: str, x: str) -> str:
        """What the next layer reads: signs, or the float twin's activation."""
        if self.binary:
            return self._node(name, Sign(), x)
        if self.activation == "relu":
            return self.relu(name, x)
        slope = np.full(self.shape(x)[2], LEAKY_SLOPE, np.float32)
        return self._step(name, PRelu(slope), x)

    def relu(self, name: str, x: str) -> str:
        """max(x, 0), in both forms."""
        return self._step(name, Clamp(0.0, float("inf")), x)

    def add(self, name: str, x: str, y: str) -> str:
        """Sum of two values."""
        return self._step(name, AddTensor(1), x, y)

    def concat(self, name: str, *values: str) -> str:
        """Concatenation along the channels."""
        return self._node(name, Concat(), *values)

    def max_pool(
        self,
        name: str,
        x: str,
        size: int,
        stride: int,
        padding: int | tuple[int, int, int, int] = 0,
    ) -> str:
        """Maximum over windows; padded taps do not count."""
        window = Window((size, size), (stride, stride), pads=_four(padding))
        return self._node(name, MaxPool2D(window), x)

    def average_pool(self, name: str, x: str, size: int, stride: int) -> str:
        """Mean over windows."""
        return self._node(name, AveragePool2D(Window((size, size), (stride, stride))), x)

    def global_average(self, name: str, x: str) -> str:
        """Mean over the map."""
        height, width, _ = self.shape(x)
        return self._node(name, AveragePool2D(Window((height, width))), x)

    def softmax(self, name: str, x: str) -> str:
        """Probabilities of the classes."""
        return self._node(name, Softmax(), x)

    def done(self, *outputs: str) -> Graph:
        """The finished source graph."""
        self.graph.outputs = list(outputs)
        if self.binary:
            self.graph.expected_binary = [
                node.name
                for node in self.graph.nodes
                if isinstance(node.op, Conv2D)
                and isinstance(self._behind_pools(node.inputs[0]).op, Sign)
                and bool(np.all(np.abs(node.op.weights) == 1))
            ]
        return self.graph

    def _node(self, name: str, op: Operator, *inputs: str) -> str:
        self.graph.nodes.append(Node(name, op, list(inputs), value=name))
        self.graph.types = infer(self.graph)
        return name

    def _step(self, name: str, step: Step, *inputs: str) -> str:
        return self._node(name, Elementwise(Epilogue([step])), *inputs)

    def _signs(self, shape: tuple[int, ...]) -> FloatArray:
        return (self.rng.integers(0, 2, shape, np.int8) * 2 - 1).astype(np.float32)

    def _reals(self, shape: tuple[int, ...]) -> FloatArray:
        """He initialisation: the variance is two over the number of inputs."""
        deviation = np.float32(np.sqrt(2 / np.prod(shape[1:])))
        return self.rng.standard_normal(shape, np.float32) * deviation

    def _normal(self, count: int, mean: float, deviation: float) -> FloatArray:
        return self.rng.normal(mean, deviation, count).astype(np.float32)

    def _behind_pools(self, value: str) -> Node:
        node = self.graph.producer(value)
        return self._behind_pools(node.inputs[0]) if isinstance(node.op, MaxPool2D) else node

    def _input_power(self, conv: str) -> float:
        """Mean square of what a convolution reads: 1 of signs, else about that of its origin."""
        source = self._behind_pools(self.graph.producer(conv).inputs[0]).op
        return 1 / 3 if isinstance(source, Input) else 1.0 if isinstance(source, Sign) else 0.5


def _four(padding: int | tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return (padding, padding, padding, padding) if isinstance(padding, int) else padding


def _median_of_maximum(taps: int) -> float:
    """Median of the maximum of ``taps`` independent standard normals."""
    return NormalDist().inv_cdf(0.5 ** (1 / taps))
