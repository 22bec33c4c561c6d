"""An epilogue alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from phonebit.converter.ir import Array, Directions, Shape, TensorType
from phonebit.converter.ops.base import BIT, F32, U8, arrays_of
from phonebit.converter.ops.epilogue.base import Epilogue
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import OpKind


@dataclass
class Elementwise(EpilogueOperator):
    """The input as float32 through the epilogue. Source: add, multiply, activation: one step."""

    kinds = (OpKind.ELEMENTWISE,)
    reads = (U8, F32, BIT)
    epilogue: Epilogue = field(default_factory=Epilogue)

    def main_shape(self, main: TensorType) -> Shape:
        return main.shape

    def compute(self, main: Array) -> Array:
        return main

    def is_per_channel(self, channels: int) -> bool:
        return self.epilogue.is_per_channel(channels)

    def directions(self) -> Directions | None:
        total: Directions = np.ones(1, np.int8)
        for step in self.epilogue.steps:
            found = step.directions()
            if found is None:
                return None
            total = total * found
        return total

    @property
    def is_shape_free(self) -> bool:
        return not any(arrays_of(step) for step in self.epilogue.steps)

    def sliced(self, channels: slice) -> Self:
        return type(self)(self.epilogue.sliced(channels))

    def makes_zeros(self, inputs: list[bool]) -> bool:
        steps = self.epilogue.steps
        return len(steps) == 1 and steps[0].makes_zeros(inputs)

    def write(self, record: RecordWriter) -> None:
        pass

    @classmethod
    def read(cls, record: RecordReader) -> Self:
        return cls()
