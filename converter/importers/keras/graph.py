"""What a layer function works with: the tensors it reads and the nodes it emits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.config import LayerSpec
from phonebit.converter.importers.keras.qkeras import without_scale
from phonebit.converter.importers.keras.quantizer_functions import (
    Quantizer,
    UnsupportedQuantizerError,
)
from phonebit.converter.importers.keras.quantizers import QuantizerResolver
from phonebit.converter.importers.keras.step_functions import Step as StepFunction
from phonebit.converter.importers.keras.weights import NoWeights, Path, WeightSource, checked
from phonebit.converter.ir import FloatArray, Node, Operator, Shape
from phonebit.converter.ops import Dequantize, Elementwise, Sign
from phonebit.converter.ops.epilogue import Epilogue, EpilogueOp
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

MAX_ELEMENTS: Final = 1 << 31
MAX_NODES: Final = 100_000
MAX_AXES: Final = 7
"""Of a tensor, the batch not counted."""
INPUT_QUANTIZER: Final = "input_quantizer"
"""Suffix of the node that is the sign a layer applies to its input, and of its value."""


class UnsupportedError(Exception):
    """A layer cannot be expressed; the message is its reason, without the layer's name."""


@dataclass(frozen=True)
class Tensor:
    """A Keras tensor: the graph value that holds it and its Keras shape without the batch.

    The graph's value is always (height, width, channels): with ones in front of fewer axes (C) or
    (W, C), and of more axes with all but the last two as its height. So the elements keep their
    order.
    """

    value: str
    shape: tuple[int, ...]
    dtype: DataType = DataType.F32
    number_type: str = "float32"
    """Of integers that are given as floats, the type that Keras has."""

    @property
    def hwc(self) -> Shape:
        """(height, width, channels)."""
        *rows, width, channels = (1,) * (3 - len(self.shape)) + self.shape
        return math.prod(rows), width, channels

    @property
    def channels(self) -> int:
        """Size of the last axis."""
        return self.shape[-1]


@dataclass
class NodeList:
    """The nodes emitted so far; ``reserved`` are value names that belong to layers."""

    reserved: set[str]
    nodes: list[Node] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def inner_name(self, name: str) -> str:
        """``name``, or if a layer is called so or it is taken, a variation of it."""
        while name in self.reserved or name in self.used:
            name += "_"
        return name


@dataclass
class LayerContext:
    """One call of one layer, while it is translated.

    ``name`` is the value name that the layer's final output must get (a path such as "sub/conv1").
    """

    layer: LayerSpec
    path: Path
    name: str
    keras_major: int
    weights: WeightSource
    quantizers: QuantizerResolver
    graph: NodeList
    expected_binary: list[str]

    @property
    def config(self) -> Mapping[str, Any]:
        """The layer's own configuration."""
        return self.layer.config

    def weight(self, role: str, shape: tuple[int, ...]) -> FloatArray:
        """A weight as the file holds it."""
        return self.weights.read(self.path, role, shape)

    def quantizer(self, key: str) -> Quantizer:
        """What the quantizer under a configuration key computes."""
        try:
            return self.quantizers.resolve(self.config.get(key), self.path, key)
        except UnsupportedQuantizerError as error:
            raise UnsupportedError(f"{key}: {error}") from error

    def quantized(self, weight: FloatArray, role: str, quantizer: str) -> FloatArray:
        """The values of a weight after its quantizer."""
        function = self.quantizer(quantizer)
        if isinstance(self.weights, NoWeights) or function.is_none:
            return weight
        try:
            return checked(function.kernel(weight), self.path, f"quantized {role}", weight.shape)
        except UnsupportedQuantizerError as error:
            raise UnsupportedError(f"{quantizer}: {error}") from error

    def quantized_bias(self, bias: FloatArray) -> FloatArray:
        """The values of a bias after its quantizer."""
        try:
            value = without_scale(self.config.get("bias_quantizer"))
            return self.quantizers.resolve(value, self.path, "bias_quantizer").kernel(bias)
        except UnsupportedQuantizerError as error:
            raise UnsupportedError(f"bias_quantizer: {error}") from error

    def emit(
        self,
        op: Operator,
        inputs: Sequence[Tensor],
        shape: tuple[int, ...],
        *,
        suffix: str = "",
        inner: str = "",
        dtype: DataType = DataType.F32,
    ) -> Tensor:
        """Appends a node.

        Args:
            op: What it computes.
            inputs: Its operands.
            shape: Keras shape of its result.
            suffix: The node is called "<layer>/<suffix>", or "<layer>" if empty.
            inner: The value is called "<layer>/<inner>", or "<layer>", its output, if empty.
            dtype: Type of the result.
        """
        node = self.graph.inner_name(f"{self.name}/{suffix}") if suffix else self.name
        value = self.graph.inner_name(f"{self.name}/{inner}") if inner else self.name
        if math.prod(shape) > MAX_ELEMENTS or min(shape, default=1) < 1:
            raise UnsupportedError(f"its output would have shape {shape}")
        if len(self.graph.nodes) >= MAX_NODES:
            raise ConversionError(f"the model has more than {MAX_NODES} nodes")
        self.graph.used.add(value)
        names = [tensor.value for tensor in inputs]
        # A sign usually ends up in the layer before its own: there it is only the quantizer.
        source = node if suffix == INPUT_QUANTIZER else self.name
        self.graph.nodes.append(Node(node, op, names, value, sources=[source]))
        return Tensor(value, shape, dtype)

    def step(
        self, x: Tensor, step: EpilogueOp, *others: Tensor, suffix: str = "", inner: str = ""
    ) -> Tensor:
        """Appends an element-wise node of one step; ``others`` are its operands 1, 2, ..."""
        op = Elementwise(Epilogue([step]))
        return self.emit(op, [x, *others], x.shape, suffix=suffix, inner=inner)

    def quantize(
        self, x: Tensor, step: StepFunction, *, suffix: str = "", inner: str = ""
    ) -> Tensor:
        """Appends a sign, whose result is bits, or a quantizer of other values."""
        dtype = DataType.BIT if isinstance(step, Sign) else DataType.F32
        return self.emit(step, [x], x.shape, suffix=suffix, inner=inner, dtype=dtype)

    def real(self, x: Tensor, inner: str = "cast") -> Tensor:
        """``x`` as real numbers: an integer image is converted, as a node "<layer>/<inner>"."""
        if x.dtype != DataType.U8:
            return x
        op = Dequantize(constant(1, x.channels), constant(0, x.channels), (1, 0, 1))
        return self.emit(op, [x], x.shape, suffix=inner, inner=inner)


def constant(value: float, channels: int) -> FloatArray:
    """One float32 number for every channel."""
    return np.full(channels, value, np.float32)


def tensors(value: Any) -> list[Tensor]:
    """The tensors in nested call arguments, in order."""
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [tensor for item in items for tensor in tensors(item)]


def integers(
    config: Mapping[str, Any], key: str, count: int, default: int = 1, minimum: int = 1
) -> tuple[int, ...]:
    """An integer or a list of ``count`` of them, as ``count`` integers from ``minimum`` on."""
    value = config.get(key, default)
    values = list(value) if isinstance(value, list | tuple) else [value] * count
    good = all(
        isinstance(v, int) and not isinstance(v, bool) and minimum <= v < 1 << 20 for v in values
    )
    if len(values) != count or not good:
        raise UnsupportedError(f"{key}={value!r} is not {count} integers from {minimum} on")
    return tuple(values)


def number(value: object, what: str) -> float:
    """A finite real number from a configuration."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnsupportedError(f"{what}={value!r} is not a finite number")
    return float(value)


def needs_rank(x: Tensor, rank: int) -> None:
    """Raises unless ``x`` has this rank (without the batch)."""
    if len(x.shape) != rank:
        raise UnsupportedError(
            f"its input has shape {x.shape}; expected {rank} axes besides the batch"
        )
