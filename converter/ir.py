"""The converter's intermediate representation: a typed, NHWC dataflow graph of one network.

Importers emit the *source* operators, which mean what the training framework computes. Passes
rewrite them into the *engine* operators, which map one to one onto the ops of a ``.pbit`` file
(docs/format.md). Each operator is a class in a file of ``converter/ops`` that says all there is to
know about it: its fields, its type rule, what it computes (in NumPy: the definition that every
backend is held to) and how a file holds it.

Values are named. A tensor's shape is (height, width, channels), the batch is implicit, and rank-1
features are (1, 1, C). A ``BIT`` tensor holds -1 or +1 per element (int8 in the interpreter).
Weights are NumPy arrays inside the operators, in OHWI order: (Cout, KH, KW, Cin / groups).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.node_list import NodeList
from phonebit.converter.origins import Origin
from phonebit.detection.head import DetectionHead
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing

Array = NDArray[Any]
FloatArray = NDArray[np.float32]
Directions = NDArray[np.int8]
Values = dict[str, Array]
Shape = tuple[int, int, int]

SMALLEST: Final = float(np.finfo(np.float32).smallest_subnormal)
"""The smallest float32 above 0: v > 0 is v >= SMALLEST."""


@dataclass(frozen=True)
class TensorType:
    """Shape (height, width, channels) and element type of a value."""

    shape: Shape
    dtype: DataType


@dataclass(frozen=True)
class Window:
    """Geometry of a sliding window; pads are (top, left, bottom, right) in pixels."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Spatial size that this window produces on a (height, width) map."""
        top, left, bottom, right = self.pads
        span_h, span_w = self.spans
        return (
            (height + top + bottom - span_h) // self.strides[0] + 1,
            (width + left + right - span_w) // self.strides[1] + 1,
        )

    @property
    def spans(self) -> tuple[int, int]:
        """Height and width of the dilated kernel."""
        height, width = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return height, width

    @property
    def padding_fits(self) -> bool:
        """Whether padding is smaller than the dilated kernel: no tap row is padding alone."""
        span_h, span_w = self.spans
        top, left, bottom, right = self.pads
        return max(top, bottom) < span_h and max(left, right) < span_w


@dataclass
class Operator(ABC):
    """What a node computes; ``converter/ops/base.py`` has the kinds of operators.

    Attributes:
        min_operands: How many main operands it needs. Where that is more than one, all inputs of
            its node are main operands.
    """

    min_operands: ClassVar[int] = 1

    @abstractmethod
    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        """The types of the values that ``node``, which holds this operator, defines.

        Raises:
            ConversionError: The operands do not fit, or the operator contradicts itself.
        """

    @abstractmethod
    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        """The values that ``node`` defines; see ``interpreter.evaluate_node``."""

    def parameters(self) -> list[Array]:
        """All arrays that training (or a pass) put into the operator, weights first."""
        return []

    def is_per_channel(self, channels: int) -> bool:
        """Whether each channel's values are mapped by a function of that one value alone."""
        return False

    def directions(self) -> Directions | None:
        """Of a per-channel operator: +1 where it never decreases, -1 where it never increases.

        Shape (C,) or (1,); 0 where it is constant. None if it is not monotone, or not provably so
        in float32.
        """
        return None

    @property
    def is_shape_free(self) -> bool:
        """Whether a per-channel operator treats all channels alike: it commutes with a reshape."""
        return False

    def sliced(self, channels: slice) -> Self:
        """A per-channel operator for some of the channels."""
        return self

    def levels(self) -> FloatArray | None:
        """The few values (n,) that its result has, whatever it reads, the lowest first."""
        return None

    def makes_zeros(self, inputs: list[bool]) -> bool:
        """Whether its result is likely to have exact zeros; ``inputs``: whether each input is."""
        return False


@dataclass
class Node:
    """One operator application.

    ``inputs`` are value names, the main operands first, then what steps refer to. ``value`` names
    the main (non-threshold) output and ``bits`` the thresholded one; source operators have one
    output, ``value``, of whatever type (Sign: BIT; MaxPool2D and Concat keep their input's type).
    In an engine graph the BIT output of MaxPool2D and Concat is still called ``value`` (the writer
    stores it as bits_output).
    ``planes`` are the outputs of BitPlanes, which has no other.
    ``name`` is the framework's layer name: errors, reports and verify speak of it.
    ``sources`` are the names of all framework layers that were fused into this node, in order.
    """

    name: str
    op: Operator
    inputs: list[str]
    value: str | None = None
    bits: str | None = None
    sources: list[str] = field(default_factory=list)
    planes: list[str] = field(default_factory=list)

    @property
    def outputs(self) -> list[str]:
        """Names of the values that this node defines."""
        return [*(name for name in (self.value, self.bits) if name is not None), *self.planes]

    @property
    def main_inputs(self) -> list[str]:
        """Those of ``inputs`` that are main operands."""
        return self.inputs if self.op.min_operands > 1 else self.inputs[:1]


@dataclass
class Graph:
    """A network: nodes in execution order, the type of every value, and what goes in and out.

    ``labels`` are class names or empty. Input nodes are listed among ``nodes`` (operator Input).
    ``preprocessing`` says by input name what images become before they are inputs; no node does.
    ``detection`` says by output name what boxes its numbers mean.
    ``arrays`` says by the names of inputs and outputs what shape the source's have without
    their batch, where it is neither a map's nor (channels): the same elements in the same order.
    ``origins`` says by the names of bits that passes made what they are in the source's terms.
    ``expected_binary`` are the names of the nodes whose kernel and input the framework quantizes:
    strict conversion demands that each of them becomes binary. ``notes`` are what the importer had
    to decide, for the report.
    """

    name: str
    nodes: list[Node]
    types: dict[str, TensorType]
    inputs: list[str]
    outputs: list[str]
    labels: list[str] = field(default_factory=list)
    expected_binary: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    preprocessing: dict[str, Preprocessing] = field(default_factory=dict)
    detection: dict[str, DetectionHead] = field(default_factory=dict)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)

    def __setattr__(self, name: str, value: Any) -> None:
        """Nodes are kept in a list that follows its changes."""
        super().__setattr__(name, NodeList(value) if name == "nodes" else value)

    def class_count(self) -> int:
        """Classes that the first output tells apart: its channels, unless it gives boxes."""
        name = self.outputs[0]
        channels = self.types[name].shape[2]
        return self.detection[name].classes(channels) if name in self.detection else channels

    @property
    def _list(self) -> NodeList:
        assert isinstance(self.nodes, NodeList)
        return self.nodes

    def producer(self, value: str) -> Node:
        """The node that defines ``value``."""
        return self._list.producer(value)

    def consumers(self, value: str) -> list[Node]:
        """The nodes that read ``value``, in execution order."""
        return self._list.readers(value)

    def defines(self, value: str) -> bool:
        """Whether a node defines ``value``."""
        return self._list.defines(value)

    def place(self, node: Node) -> int:
        """Position of this very node in the execution order."""
        return self._list.place(node)

    def rewire(self, node: Node, inputs: list[str]) -> None:
        """Gives one of the nodes other inputs."""
        self._list.rewire(node, inputs)
