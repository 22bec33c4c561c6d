"""Functions without parameters: one short class each, all that the converter says about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Self, get_args

import numpy as np

from phonebit.converter.ir import Array, Directions, FloatArray
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import StepKind


@dataclass(frozen=True)
class Names:
    """What frameworks call a function; None where it is no operator, or one with attributes.

    TensorFlow Lite's operators are imported as ONNX's.
    """

    keras: str
    torch: str
    onnx: str | None = None
    tflite: str | None = None


Framework = Literal["keras", "torch", "onnx", "tflite"]


@dataclass
class Function(EpilogueOp):
    """A function of v alone.

    Attributes:
        names: How importers find it, and plug-ins, by Keras' name.
        is_activation: Whether Keras knows it as an activation, too.
        is_monotone: Whether a larger number never has a smaller result: a sign or a quantizer
            after it can become thresholds. What is no number for some v is not monotone.
        has_inplace: Whether PyTorch has a form in place, too ("exp_").
        steepest: Its largest slope, or 1.
    """

    names: ClassVar[Names]
    is_activation: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True
    has_inplace: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0

    @classmethod
    def of_call(cls, arguments: Mapping[str, object]) -> Self:
        """The function that a framework calls with these arguments (and v).

        Raises:
            ValueError: They ask for something else; the message says what.
        """
        return cls()

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls()

    def directions(self) -> Directions | None:
        return None  # exp and tanh are polynomials, which need not be monotone to the last bit

    def gain(self, operands: list[Array]) -> Array | float:
        return self.steepest


@dataclass
class Sigmoid(Function):
    """1 / (1 + exp(-v))."""

    kinds = (StepKind.SIGMOID,)
    names = Names(keras="sigmoid", torch="sigmoid", onnx="Sigmoid", tflite="LOGISTIC")

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(over="ignore"):  # exp(+big) = inf gives the right answer: 0
            return np.float32(1) / (np.float32(1) + np.exp(-value))


@dataclass
class Tanh(Function):
    """Hyperbolic tangent."""

    kinds = (StepKind.TANH,)
    names = Names(keras="tanh", torch="tanh", onnx="Tanh", tflite="TANH")

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return np.tanh(value)


@dataclass
class Round(Function):
    """The nearest integer, halves to even."""

    kinds = (StepKind.ROUND,)
    names = Names(keras="round", torch="round", onnx="Round", tflite="ROUND")
    is_activation = False
    makes_steps = True

    @classmethod
    def of_call(cls, arguments: Mapping[str, object]) -> Self:
        if arguments.get("decimals"):
            raise ValueError(f"rounds to {arguments['decimals']} decimals; expected integers")
        return cls()

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return np.rint(value)

    def borders(self, value: FloatArray) -> FloatArray:
        """How far each value is from where its integer changes."""
        distance: FloatArray = np.abs(value - np.floor(value) - 0.5)
        return distance

    def directions(self) -> Directions | None:
        return np.ones(1, np.int8)


@dataclass
class Gelu(Function):
    """v times the share of the normal distribution below v.

    ``approximate``: 0.5 v (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3))).
    """

    kinds = (StepKind.GELU, StepKind.GELU_TANH)
    names = Names(keras="gelu", torch="gelu")
    is_monotone = False
    steepest = 1.13
    approximate: bool = False

    @property
    def kind(self) -> int:
        return int(self.kinds[self.approximate])

    @classmethod
    def of_call(cls, arguments: Mapping[str, object]) -> Self:
        approximate = arguments.get("approximate", False)
        if approximate not in (False, True, "none", "tanh"):
            raise ValueError(f"gelu with approximate={approximate!r}, expected 'none' or 'tanh'")
        return cls(approximate in (True, "tanh"))

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls(record.integer("kind") == StepKind.GELU_TANH)

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        v = value.astype(np.float64)
        if self.approximate:
            share = 0.5 + 0.5 * np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))
        else:
            share = 0.5 * np.asarray(_ERFC(v * -math.sqrt(0.5)), np.float64)
        with np.errstate(invalid="ignore"):  # -inf times 0 is NaN, here as in the frameworks
            return (v * share).astype(np.float32)


_ERFC: Final = np.frompyfunc(math.erfc, 1, 1)


@dataclass
class Exp(Function):
    """e to the power of v."""

    kinds = (StepKind.EXP,)
    names = Names(keras="exp", torch="exp", onnx="Exp", tflite="EXP")
    is_activation = False
    steepest = math.inf

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(value)


@dataclass
class Log(Function):
    """The natural logarithm."""

    kinds = (StepKind.LOG,)
    names = Names(keras="log", torch="log", onnx="Log", tflite="LOG")
    is_monotone = False
    is_activation = False
    steepest = math.inf

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(value)


@dataclass
class Sqrt(Function):
    """The square root."""

    kinds = (StepKind.SQRT,)
    names = Names(keras="sqrt", torch="sqrt", onnx="Sqrt", tflite="SQRT")
    is_monotone = False
    is_activation = False
    steepest = math.inf

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.sqrt(value)


@dataclass
class Reciprocal(Function):
    """1 / v."""

    kinds = (StepKind.RECIPROCAL,)
    names = Names(keras="reciprocal", torch="reciprocal", onnx="Reciprocal")
    is_monotone = False
    is_activation = False
    steepest = math.inf

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.float32(1) / value


@dataclass
class Elu(Function):
    """v, below 0 exp(v) - 1; other multiples of that are a PReLU after it."""

    kinds = (StepKind.ELU,)
    names = Names(keras="elu", torch="elu")

    @classmethod
    def of_call(cls, arguments: Mapping[str, object]) -> Self:
        factors = {name: arguments.get(name, 1) for name in ("alpha", "scale", "input_scale")}
        if any(factor != 1 for factor in factors.values()):
            raise ValueError(f"elu with {factors}; expected 1 for all of them")
        return cls()

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return np.where(value < 0, np.expm1(np.minimum(value, 0)), value)


@dataclass
class Softplus(Function):
    """log(1 + exp(v))."""

    kinds = (StepKind.SOFTPLUS,)
    names = Names(keras="softplus", torch="softplus", onnx="Softplus")
    has_inplace = False

    @classmethod
    def of_call(cls, arguments: Mapping[str, object]) -> Self:
        # Beyond the threshold PyTorch gives v, which differs from 17 on by less than a rounding.
        if arguments.get("beta", 1) != 1 or float(str(arguments.get("threshold", 20))) < 17:
            raise ValueError("softplus with another beta than 1, or a threshold below 17")
        return cls()

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        return np.logaddexp(np.float32(0), value)


@dataclass
class Mish(Function):
    """v tanh(log(1 + exp(v)))."""

    kinds = (StepKind.MISH,)
    names = Names(keras="mish", torch="mish", onnx="Mish")
    is_monotone = False
    steepest = 1.09

    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        with np.errstate(invalid="ignore"):  # -inf times 0 is NaN, here as in the frameworks
            return value * np.tanh(np.logaddexp(np.float32(0), value))


FUNCTIONS: Final[dict[Framework, dict[str, type[Function]]]] = {
    framework: {
        name: each for each in Function.__subclasses__() if (name := getattr(each.names, framework))
    }
    for framework in get_args(Framework)
}
"""For each framework by what it calls them."""
