"""Source graphs with seeded weights, layer by layer: a network once as BNN, once as its float twin.

A definition is a function that calls the methods below in the order of the layers. In the form
"binary" a convolution reads signs and holds weights of -1 and +1; in the form "float", its twin,
it reads what the activation leaves of real numbers and holds float weights. Both have the same
layers and parameter counts. No framework is needed: the graph is what an importer would give.

Numbers are drawn as training leaves them: a batch normalization's statistics follow what it reads
(``moments.py``), and shifts make about half of the bits after a max-pool +1; otherwise deep layers
would see constant maps. The form "outline" is the binary network without numbers: shapes, costs and
parameter counts of the largest network in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from phonebit.converter.infer import infer
from phonebit.converter.ir import FloatArray, Graph, Node, Operator, Shape, TensorType, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Concat,
    Conv2D,
    Elementwise,
    Input,
    MaxPool2D,
    Sign,
    Softmax,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, EpilogueOp, PRelu
from phonebit.format.records import DataType
from phonebit.models.networks.moments import Moments, moments_of

Form = Literal["binary", "float", "outline"]
Activation = Literal["relu", "leaky_relu"]

IMAGE: Final = "picture"
LEAKY_SLOPE: Final = 0.1
"""Of darknet's leaky ReLU."""
EPSILON: Final = 1e-3
NEGATIVE_GAMMAS: Final = 0.1
"""Share of batch normalization scales below zero, about what training leaves."""
BLUR: Final = (1, 2, 1)
"""Binomial filter of an anti-aliased pool, in both directions."""


@dataclass
class NetworkBuilder:
    """Collects the layers of one network; see the module.

    Attributes:
        name: the network's name.
        form: "binary", its twin "float", or "outline": binary, and all numbers are placeholders.
        activation: of the float twin, where the binary network has signs.
        seed: of all weights and statistics.
    """

    name: str
    form: Form
    activation: Activation = "relu"
    seed: int = 1
    graph: Graph = field(init=False)
    rng: np.random.Generator = field(init=False)
    moments: dict[str, Moments] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = Graph(self.name, [], {}, [], [])
        self.rng = np.random.default_rng(self.seed)

    @property
    def binary(self) -> bool:
        """Whether this is the binary network, not its float twin."""
        return self.form != "float"

    def shape(self, value: str) -> Shape:
        """(height, width, channels) of a value."""
        return self.graph.types[value].shape

    def image(self, height: int, width: int, channels: int = 3) -> str:
        """The input, float values of -1..1 (level u stands for (2 u - 255) / 255)."""
        self.graph.inputs.append(IMAGE)
        self.graph.types[IMAGE] = TensorType((height, width, channels), DataType.F32)
        return self._node(IMAGE, Input())

    def conv(
        self,
        name: str,
        x: str,
        filters: int,
        kernel: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: int | tuple[int, int, int, int] = 0,
        pad_value: float = 0.0,
        groups: int = 1,
        real: bool = False,
        bias: bool = False,
    ) -> str:
        """Convolution; in the binary network its weights are -1 and +1, unless ``real``.

        Args:
            name: of the layer.
            x: what it reads.
            filters: output channels.
            kernel: height and width of the window, one number where they are the same.
            stride: in both directions.
            padding: taps around the map on all sides, or (top, left, bottom, right).
            pad_value: what those count as where the input is signs; float values are padded with 0.
            groups: of channels.
            real: float weights in the binary network, too.
            bias: whether it has one.

        Returns:
            The name of the result.
        """
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        window = Window(sides, (stride, stride), pads=_four(padding))
        pad_value = pad_value if self._is_bits(x) else 0.0
        return self._convolution(name, x, filters, window, groups, pad_value, real, bias)

    def dense(
        self, name: str, x: str, units: int, *, real: bool = False, bias: bool = False
    ) -> str:
        """Dense layer: a convolution whose window is the whole map; see ``conv``."""
        height, width, _ = self.shape(x)
        return self._convolution(name, x, units, Window((height, width)), 1, 0.0, real, bias)

    def blur_pool(self, name: str, x: str, stride: int) -> str:
        """Depthwise binomial 3x3 filter with a stride (Zhang, 2019); its weights are fixed."""
        channels = self.shape(x)[2]
        filter_2d = np.outer(BLUR, BLUR).astype(np.float32) / np.float32(sum(BLUR) ** 2)
        weights = np.broadcast_to(filter_2d[..., None], (channels, *filter_2d.shape, 1)).copy()
        window = Window((len(BLUR), len(BLUR)), (stride, stride), pads=_four(1))
        return self._node(name, Conv2D(weights, window, groups=channels), x)

    def batch_norm(self, name: str, x: str, *, pool: int = 1) -> str:
        """Batch normalization of ``x``.

        Args:
            name: of the layer.
            x: what it reads.
            pool: taps of the max-pool after it, 1: none. Half of the maxima then are above 0.
        """
        channels = self.shape(x)[2]
        if self.form == "outline":
            blank = np.broadcast_to(np.float32(1), channels)
            return self._node(name, BatchNorm(blank, blank, blank, blank, EPSILON), x)
        seen = self.moments[x]
        gamma = self.rng.uniform(0.5, 1.5, channels)
        gamma[self.rng.random(channels) < NEGATIVE_GAMMAS] *= -1
        shift = -_median_of_maximum(pool) * np.abs(gamma)
        deviation = np.sqrt(seen.variance)
        op = BatchNorm(
            gamma.astype(np.float32),
            (shift + self.rng.normal(0, 0.1, channels)).astype(np.float32),
            (seen.mean + self.rng.normal(0, 0.1, channels) * deviation).astype(np.float32),
            (seen.variance * self.rng.uniform(0.8, 1.25, channels)).astype(np.float32),
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
        return self.graph

    def _convolution(
        self,
        name: str,
        x: str,
        filters: int,
        window: Window,
        groups: int,
        pad_value: float,
        real: bool,
        bias: bool,
    ) -> str:
        shape = (filters, *window.kernel, self.shape(x)[2] // groups)
        signs = self.binary and not real
        weights = self._signs(shape) if signs else self._reals(shape)
        offsets = self._biases(filters) if bias else None
        if signs and self._is_bits(x):
            self.graph.expected_binary.append(name)
        return self._node(name, Conv2D(weights, window, groups, pad_value, offsets), x)

    def _is_bits(self, value: str) -> bool:
        return self.graph.types[value].dtype == DataType.BIT

    def _node(self, name: str, op: Operator, *inputs: str) -> str:
        node = Node(name, op, list(inputs), value=name)
        self.graph.nodes.append(node)
        self.graph.types[name] = self._type_of(node)
        if self.form != "outline":
            channels = self.shape(name)[2]
            self.moments[name] = moments_of(op, [self.moments[x] for x in inputs], channels)
        return name

    def _type_of(self, node: Node) -> TensorType:
        """Inferred from this node alone; inferring the whole graph each time is quadratic."""
        types = self.graph.types
        read = [Node(value, Input(), [], value=value) for value in dict.fromkeys(node.inputs)]
        alone = Graph(self.name, [*read, node], dict(types), [], [])
        return infer(alone)[node.name]

    def _step(self, name: str, step: EpilogueOp, *inputs: str) -> str:
        return self._node(name, Elementwise(Epilogue([step])), *inputs)

    def _signs(self, shape: tuple[int, ...]) -> FloatArray:
        if self.form == "outline":
            return np.broadcast_to(np.float32(1), shape)
        return (self.rng.integers(0, 2, shape, np.int8) * 2 - 1).astype(np.float32)

    def _reals(self, shape: tuple[int, ...]) -> FloatArray:
        """He initialisation: the variance is two over the number of inputs."""
        if self.form == "outline":
            return np.broadcast_to(np.float32(1), shape)
        deviation = np.float32(np.sqrt(2 / np.prod(shape[1:])))
        return self.rng.standard_normal(shape, np.float32) * deviation

    def _biases(self, count: int) -> FloatArray:
        return self.rng.normal(0, 0.05, count).astype(np.float32)


def _four(padding: int | tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return (padding, padding, padding, padding) if isinstance(padding, int) else padding


def _median_of_maximum(taps: int) -> float:
    """Median of the maximum of ``taps`` independent standard normals."""
    return NormalDist().inv_cdf(0.5 ** (1 / taps))
