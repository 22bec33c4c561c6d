"""Operators with an epilogue, and those of them that slide a window over the map."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Final, Self

import numpy as np

from phonebit.converter.ir import Array, Node, Operator, Shape, TensorType, Values, Window
from phonebit.converter.ops.base import EngineOperator
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.records import RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

MAX_EXTENT: Final = 1 << 20


class EpilogueOperator(EngineOperator):
    """Computes a main value, which its epilogue stores as a value, as bits or as both."""

    epilogue: Epilogue

    @abstractmethod
    def main_shape(self, main: TensorType) -> Shape:
        """Shape of the main value.

        Raises:
            ConversionError: The operand does not fit, or the operator contradicts itself.
        """

    @abstractmethod
    def compute(self, main: Array) -> Array:
        """The main value (N, H, W, C), float32 or an integer accumulator."""

    def is_integer(self, main: DataType) -> bool:
        """Whether the main value of an operand of this type is an integer accumulator."""
        return False

    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        shape = self.main_shape(operands[0])
        return self.epilogue.types(node, shape, operands, self.is_integer(operands[0].dtype))

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        return self.epilogue.evaluate(node, self.compute(operands[0]), operands, margins)

    def parameters(self) -> list[Array]:
        return self.epilogue.parameters()

    def with_epilogue(self, epilogue: Epilogue) -> Self:
        """The same operator with another epilogue."""
        changed = copy(self)
        changed.epilogue = epilogue
        return changed


class WindowOperator(EpilogueOperator):
    """Slides a window over the map."""

    window: Window

    def size(self, main: TensorType) -> tuple[int, int]:
        """Height and width of the main value.

        Raises:
            ConversionError: The window does not fit the map.
        """
        window, shape = self.window, main.shape
        if min((*window.kernel, *window.strides, *window.dilation)) < 1 or min(window.pads) < 0:
            what = "kernel, strides and dilation must be >= 1, padding >= 0"
            raise ConversionError(what, got=window)
        size = window.output_size(shape[0], shape[1])
        if min(size) < 1:
            what = "the window is larger than the padded map"
            raise ConversionError(what, expected=window, got=shape)
        if max(size) > MAX_EXTENT:  # checked here, before anything of this length is computed with
            expected = f"<= {MAX_EXTENT} a side"
            raise ConversionError("output too large", expected=expected, got=size)
        return size

    def problems(self, kind: DataType) -> list[str]:
        if self.window.padding_fits:
            return []
        return [f"padding must be smaller than the kernel: {self.window}"]

    def write(self, record: RecordWriter) -> None:
        record.window(self.window)


class PoolOperator(WindowOperator):
    """Combines the taps inside the map, each channel by itself."""

    def main_shape(self, main: TensorType) -> Shape:
        """Every window must see at least one pixel: an empty maximum or mean means nothing."""
        window, shape, size = self.window, main.shape, self.size(main)
        for axis in range(2):
            dilation, stride, pad = window.dilation[axis], window.strides[axis], window.pads[axis]
            # Padding is smaller than the window, so one that starts inside the map sees a pixel.
            before = min(size[axis], -(-pad // stride)) if shape[axis] < dilation else 0
            start = np.arange(before, dtype=np.int64) * stride - pad
            first = np.maximum(0, -(start // dilation))  # the first tap at or after the map's edge
            if not np.all((first < window.kernel[axis]) & (start + first * dilation < shape[axis])):
                what = "a pooling window lies wholly in the padding"
                raise ConversionError(what, expected=shape, got=window)
        return (*size, shape[2])


def epilogue_of(op: Operator) -> Epilogue | None:
    """The operator's epilogue, if it has one."""
    return op.epilogue if isinstance(op, EpilogueOperator) else None
