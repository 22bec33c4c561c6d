"""What an epilogue operation has to say, and the epilogue: operations and a threshold."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Array, Directions, FloatArray, Node, Shape, TensorType, Values
from phonebit.converter.ops.base import (
    BIT,
    F32,
    Numbered,
    arrays_of,
    as_float,
    check_per_channel,
    sliced,
)
from phonebit.errors import ConversionError


@dataclass
class EpilogueOp(Numbered):
    """Maps a float32 value ``v`` in channel ``c``, element by element; the format's "step".

    Its fields that are arrays hold a number for each channel (PReLU: or each element); its numbers
    in the file are ``StepKind``.

    Attributes:
        makes_steps: Whether its results are integers.
    """

    makes_steps: ClassVar[bool] = False

    def check(self, shape: Shape, operands: list[TensorType]) -> None:
        """Raises a ConversionError unless it fits a value of ``shape`` and the node's inputs."""
        check_per_channel(shape[2], **arrays_of(self))

    @abstractmethod
    def apply(self, value: FloatArray, operands: list[Array]) -> FloatArray:
        """The result for ``value`` (N, H, W, C); one rounding per arithmetic sign.

        Args:
            value: What it maps.
            operands: The node's input values.
        """

    @abstractmethod
    def directions(self) -> Directions | None:
        """See ``Operator.directions``."""

    def is_per_channel(self, channels: int) -> bool:
        """Whether each channel's values are mapped by a function of that one value alone."""
        return all(array.size == channels for array in arrays_of(self).values())

    def gain(self, operands: list[Array]) -> Array | float:
        """How many times larger it makes a difference of two values, at most; 1 if not larger."""
        return 1.0

    def saturates(self) -> bool:
        """Whether it maps many values to one, beyond some limit."""
        return False

    def makes_zeros(self, inputs: list[bool]) -> bool:
        """As ``Operator.makes_zeros``, of an operation that is the only one."""
        return False


@dataclass
class Epilogue:
    """What happens to an operator's main value before it is stored.

    ``threshold`` yields the packed bits: int32 array of shape (C,): accumulator >= T[c], only
    without steps; float32 array of shape (C,): v >= t[c] after the steps; None: no bits.
    """

    steps: list[EpilogueOp] = field(default_factory=list)
    threshold: NDArray[np.int32] | FloatArray | None = None

    def types(
        self, node: Node, shape: Shape, operands: list[TensorType], integer: bool
    ) -> dict[str, TensorType]:
        """The types of what ``node`` defines.

        Args:
            node: Its value and bits are named.
            shape: Of the main value.
            operands: Types of the node's inputs.
            integer: Whether the main value is an integer accumulator.

        Raises:
            ConversionError: An operation or the threshold does not fit.
        """
        for step in self.steps:
            step.check(shape, operands)
        threshold = self.threshold
        if (threshold is None) != (node.bits is None):
            raise ConversionError("bits and threshold come together")
        result = {} if node.value is None else {node.value: TensorType(shape, F32)}
        if node.bits is not None and threshold is not None:
            check_per_channel(shape[2], threshold=threshold)
            bare = integer and node.value is None and not self.steps
            if threshold.dtype == np.int32 and not bare:
                raise ConversionError("an integer threshold needs a bare integer accumulator")
            if threshold.dtype not in (np.int32, np.float32):
                raise ConversionError(
                    "threshold type", expected="int32 or float32", got=threshold.dtype
                )
            result[node.bits] = TensorType(shape, BIT)
        return result

    def evaluate(
        self, node: Node, main: Array, operands: list[Array], margins: Values | None
    ) -> Values:
        """What becomes of the main value; see ``interpreter.evaluate_node``."""
        threshold = self.threshold
        if node.bits is not None and threshold is not None and threshold.dtype == np.int32:
            return {node.bits: signs_of(main, threshold)}
        value = as_float(main)
        for step in self.steps:
            value = step.apply(value, operands)
        outputs = {} if node.value is None else {node.value: value}
        if node.bits is not None and threshold is not None:
            outputs.update(compare(node.bits, value, threshold, margins))
        return outputs

    def is_per_channel(self, channels: int) -> bool:
        """Whether all steps are."""
        return all(step.is_per_channel(channels) for step in self.steps)

    def sliced(self, channels: slice) -> Epilogue:
        """The epilogue, of per-channel steps, for some of the channels."""
        threshold = None if self.threshold is None else self.threshold[channels]
        return Epilogue([sliced(step, channels) for step in self.steps], threshold)

    def parameters(self) -> list[Array]:
        """All arrays, the threshold last."""
        arrays = [array for step in self.steps for array in arrays_of(step).values()]
        return arrays if self.threshold is None else [*arrays, self.threshold]


def signs_of(value: Array, threshold: Array) -> NDArray[np.int8]:
    """+1 where a value reaches its threshold, else -1."""
    return np.where(value >= threshold, np.int8(1), np.int8(-1))


def compare(name: str, value: Array, threshold: Array, margins: Values | None) -> Values:
    """A BIT value by comparison of floats, which also gives its margins."""
    if margins is not None:
        with np.errstate(invalid="ignore"):
            margins[name] = value - threshold
    return {name: signs_of(value, threshold)}
