"""The converter's intermediate representation: a typed, NHWC dataflow graph of one network.

Importers emit the *source* operators, which mean what the training framework computes. Passes
rewrite them into the *engine* operators, which map one to one onto the ops of a ``.pbit`` file
(docs/format.md). ``converter/interpreter.py`` executes both, in NumPy, and is the definition of
what each operator computes.

Values are named. A tensor's shape is (height, width, channels), the batch is implicit, and rank-1
features are (1, 1, C). A ``BIT`` tensor holds -1 or +1 per element (int8 in the interpreter).
Weights are NumPy arrays inside the operators, in OHWI order: (Cout, KH, KW, Cin / groups).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.detection.head import DetectionHead
from phonebit.format.records import DataType
from phonebit.preprocessing import Preprocessing

FloatArray = NDArray[np.float32]
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
        span_h = (self.kernel[0] - 1) * self.dilation[0] + 1
        span_w = (self.kernel[1] - 1) * self.dilation[1] + 1
        return (
            (height + top + bottom - span_h) // self.strides[0] + 1,
            (width + left + right - span_w) // self.strides[1] + 1,
        )


# --- epilogue of the engine operators ------------------------------------------------------------


@dataclass
class ScaleBias:
    """v * scale[c] + bias[c], rounded after the product and after the sum."""

    scale: FloatArray
    bias: FloatArray


@dataclass
class AddTensor:
    """v + t, where t is the node's input number ``operand`` (same shape or (1, 1, C))."""

    operand: int


@dataclass
class MultiplyTensor:
    """v * t, where t is the node's input number ``operand`` (same shape or (1, 1, C))."""

    operand: int


@dataclass
class Clamp:
    """min(max(v, low), high); ReLU is (0, inf)."""

    low: float
    high: float


@dataclass
class PRelu:
    """v * positive[i] if v >= 0 else v * slope[i]; C or H*W*C elements each, alike.

    Without ``positive`` values >= 0 stay as they are.
    """

    slope: FloatArray
    positive: FloatArray | None = None


@dataclass
class Sigmoid:
    """1 / (1 + exp(-v))."""


@dataclass
class Tanh:
    """Hyperbolic tangent."""


@dataclass
class Round:
    """The nearest integer, halves to even."""


Step = ScaleBias | AddTensor | MultiplyTensor | Clamp | PRelu | Sigmoid | Tanh | Round


@dataclass
class Epilogue:
    """What happens to an operator's main value before it is stored.

    ``threshold`` yields the packed bits: int32 array of shape (C,): accumulator >= T[c], only
    without steps; float32 array of shape (C,): v >= t[c] after the steps; None: no bits.
    """

    steps: list[Step] = field(default_factory=list)
    threshold: NDArray[np.int32] | FloatArray | None = None


# --- operators that importers emit (source) and that engine graphs may keep -----------------------


@dataclass
class Input:
    """A network input. A real-valued source input that is read as U8 is followed by Dequantize."""


@dataclass
class Dequantize:
    """Source only. u8 -> float32: x * scale[c] + offset[c] (C elements each).

    ``rational`` is (mul, add, divisor) when the value is exactly (mul * x + add) / divisor with
    integers for every channel, e.g. (2, -255, 255) for the range -1..1; else None.
    """

    scale: FloatArray
    offset: FloatArray
    rational: tuple[int, int, int] | None = None


@dataclass
class Sign:
    """Source only. v >= threshold -> +1, else -1, a BIT tensor; sign(0) = +1 by default."""

    threshold: float = 0.0


@dataclass
class Quantize:
    """Source only. A value becomes one of a few: values[number of thresholds t with v >= t].

    ``thresholds`` ascend, shape (n,); ``values`` have shape (n + 1,), the lowest first. torch.sign,
    whose 0 stays 0, is thresholds (0, SMALLEST), values (-1, 0, 1); a bare sign with sign(0) = +1
    is the operator Sign instead. What a network counts as an exact zero is decided by
    ``passes/decide_zeros.py``.
    """

    thresholds: FloatArray
    values: FloatArray


@dataclass
class PlaneSum:
    """Passes only. offset[c] + sum over i of scales[i, c] * b_i: a Quantize as n planes of bits.

    The node's inputs are n BIT values of one shape, the lowest threshold's first (b_i is +1 where
    v >= thresholds[i], so b_0 >= b_1 >= ...); the result is F32.
    """

    scales: FloatArray
    offset: FloatArray


@dataclass
class Divide:
    """Source only. v / divisor[c], rounded once."""

    divisor: FloatArray


@dataclass
class BatchNorm:
    """Source only. Batch normalisation at inference, in the float32 arithmetic of its framework.

    "keras": (x - mean) * (gamma / sqrt(variance + epsilon)) + beta, each operation rounded.
    "torch": x * scale + (beta - mean * scale), the products and sums fused (FMA), with
    scale = (1 / sqrt(variance + epsilon)) * gamma: PyTorch's vectorised CPU code, to the bit.
    """

    gamma: FloatArray
    beta: FloatArray
    mean: FloatArray
    variance: FloatArray
    epsilon: float
    arithmetic: Literal["keras", "torch"] = "keras"


@dataclass
class Conv2D:
    """Convolution or (as a window over the whole map) dense layer.

    Source form: ``weights`` are what the framework multiplies by (after its kernel quantizer),
    ``pad_value`` is what padded taps count as, ``bias`` may be None, ``epilogue`` is empty and the
    input may be BIT (then the product is over -1/+1).
    Engine form: input F32 (any weights), or U8 with weights of -1/+1 only, where
    the accumulator is sum w * (input_mul * x + input_add); ``bias`` None and ``pad_value`` 0.
    ``stored_as`` F16: every weight is a half, and the file holds 2 bytes of it; I8: an integer of
    at most 127, and 1 byte.
    """

    weights: FloatArray
    window: Window
    groups: int = 1
    pad_value: float = 0.0
    bias: FloatArray | None = None
    input_mul: int = 1
    input_add: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)
    stored_as: Literal[DataType.F32, DataType.F16, DataType.I8] = DataType.F32


@dataclass
class MaxPool2D:
    """Maximum over the taps inside the map; of bits, minimum on channels set in ``flip``."""

    window: Window
    flip: NDArray[np.bool_] | None = None
    epilogue: Epilogue = field(default_factory=Epilogue)


@dataclass
class AveragePool2D:
    """Mean over the taps inside the map."""

    window: Window
    epilogue: Epilogue = field(default_factory=Epilogue)


@dataclass
class Elementwise:
    """The input as float32 through the epilogue. Source: add, multiply, activation: one step."""

    epilogue: Epilogue = field(default_factory=Epilogue)


@dataclass
class Concat:
    """Concatenation along the channels, of F32 or of BIT values."""


@dataclass
class Pad:
    """``value`` around the map; pads are (top, left, bottom, right)."""

    pads: tuple[int, int, int, int]
    value: float = 0.0


@dataclass
class Reshape:
    """The same elements in NHWC order under a new (height, width, channels)."""

    shape: Shape


@dataclass
class SelectChannels:
    """Output channel c is input channel indices[c], or 0.0 where that is -1; F32.

    One operator for slices, splits, shuffles and channels of zeros.
    """

    indices: NDArray[np.int32]


@dataclass
class Softmax:
    """Over the channels; ``log``: its natural logarithm, computed as v - max - log(sum exp)."""

    log: bool = False


# --- operators that only passes create ------------------------------------------------------------


@dataclass
class BinaryConv2D:
    """Engine only. Input BIT, ``weights`` int8 of -1/+1, padded taps count as ``pad_value``.

    ``pad_value`` is -1, 0 or 1.
    """

    weights: NDArray[np.int8]
    window: Window
    groups: int = 1
    pad_value: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)


@dataclass
class BinaryDepthwiseConv2D:
    """Engine only. One filter a channel: ``weights`` int8 of -1/+1, shape (C, KH, KW, 1)."""

    weights: NDArray[np.int8]
    window: Window
    pad_value: int = 0
    epilogue: Epilogue = field(default_factory=Epilogue)


Operator = (
    Input
    | Dequantize
    | Sign
    | Quantize
    | PlaneSum
    | Divide
    | BatchNorm
    | Conv2D
    | MaxPool2D
    | AveragePool2D
    | Elementwise
    | Concat
    | Pad
    | Reshape
    | SelectChannels
    | Softmax
    | BinaryConv2D
    | BinaryDepthwiseConv2D
)


@dataclass
class Node:
    """One operator application.

    ``inputs`` are value names, the main operands first, then what steps refer to. ``value`` names
    the main (non-threshold) output and ``bits`` the thresholded one; source operators have one
    output, ``value``, of whatever type (Sign: BIT; MaxPool2D and Concat keep their input's type).
    In an engine graph the BIT output of MaxPool2D and Concat is still called ``value`` (the writer
    stores it as bits_output).
    ``name`` is the framework's layer name: errors, reports and verify speak of it.
    ``sources`` are the names of all framework layers that were fused into this node, in order.
    """

    name: str
    op: Operator
    inputs: list[str]
    value: str | None = None
    bits: str | None = None
    sources: list[str] = field(default_factory=list)

    @property
    def outputs(self) -> list[str]:
        """Names of the values that this node defines."""
        return [name for name in (self.value, self.bits) if name is not None]


GraphStage = Literal["source", "engine"]


@dataclass
class Graph:
    """A network: nodes in execution order, the type of every value, and what goes in and out.

    ``labels`` are class names or empty. Input nodes are listed among ``nodes`` (operator Input).
    ``preprocessing`` says by input name what pictures become before they are inputs; no node does.
    ``detection`` says by output name what boxes its numbers mean.
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

    def class_count(self) -> int:
        """Classes that the first output tells apart: its channels, unless it gives boxes."""
        name = self.outputs[0]
        channels = self.types[name].shape[2]
        return self.detection[name].classes(channels) if name in self.detection else channels

    def producer(self, value: str) -> Node:
        """The node that defines ``value``."""
        for node in self.nodes:
            if value in node.outputs:
                return node
        raise KeyError(value)

    def consumers(self, value: str) -> list[Node]:
        """The nodes that read ``value``, in execution order."""
        return [node for node in self.nodes if value in node.inputs]
