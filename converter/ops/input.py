"""A network input."""

from __future__ import annotations

from dataclasses import dataclass

from phonebit.converter.ir import Array, Node, Operator, TensorType, Values


@dataclass
class Input(Operator):
    """A network input. A real-valued source input that is read as U8 is followed by Dequantize.

    The graph knows its type, and who executes the graph its value.
    """

    min_operands = 0

    def types(self, node: Node, operands: list[TensorType]) -> dict[str, TensorType]:
        raise TypeError(f"{node.name}: the graph has the type of an Input")

    def evaluate(self, node: Node, operands: list[Array], margins: Values | None) -> Values:
        raise TypeError(f"{node.name}: an Input has no operation to execute")
