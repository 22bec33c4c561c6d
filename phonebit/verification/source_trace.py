"""What the source network computes: every value of its graph, for given inputs.

The training framework's own activations are used where there are any. What the framework does not
show (the sign inside a quantized layer, say) follows from them by the source graph's own operators,
one operator at a time, so that nothing drifts from what the framework computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Input
from phonebit.errors import VerificationError
from phonebit.format.records import DataType

Array = NDArray[Any]
Activations = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""Function from source inputs to the framework's layer outputs by layer name."""
FrameworkName = Literal["Keras", "PyTorch", "ONNX", "TensorFlow Lite"]


@dataclass
class SourceTrace:
    """Values of the source graph, (N, height, width, channels) by name.

    Attributes:
        graph: the source graph.
        values: float32, uint8, or int8 of -1 and +1.
        margins: for values of -1 and +1: the float value whose sign they are.
    """

    graph: Graph
    values: dict[str, Array] = field(default_factory=dict)
    margins: dict[str, Array] = field(default_factory=dict)

    def replay(
        self, changed: Mapping[str, Array], kept: Collection[str], wanted: Collection[str]
    ) -> SourceTrace:
        """What the source would have computed, had some of its values been others.

        Args:
            changed: those values, by name.
            kept: names of values that stay as they are although they follow from changed ones.
            wanted: names of the values of interest.

        Returns:
            A trace in which these values follow from the changed ones by the source's operators.
        """
        stale = set()
        for node in self.graph.nodes:
            name = node.outputs[0]
            if name in changed or name in kept:
                continue
            if any(operand in stale or operand in changed for operand in node.inputs):
                stale.add(name)
        needed = set(wanted)
        steps: list[Node] = []
        for node in reversed(self.graph.nodes):
            if node.outputs[0] in needed & stale:
                steps.append(node)
                needed.update(node.inputs)
        again = SourceTrace(self.graph, {**self.values, **changed}, dict(self.margins))
        for node in reversed(steps):
            operands = [again.values[name] for name in node.inputs]
            again.values.update(evaluate_node(node, operands, again.margins))
        return again


@dataclass
class Source:
    """A source network that can be traced.

    Attributes:
        name: what the user called it.
        graph: its source graph.
        framework: the framework's activations, or None: the reference interpreter is used.
        reason: why there is no framework, or "".
        trained_with: the framework's name.
        default_kernels: what the framework computes with its default kernels, where ``framework``
            has reference kernels.
    """

    name: str
    graph: Graph
    framework: Activations | None
    reason: str
    trained_with: FrameworkName = "Keras"
    default_kernels: Activations | None = None

    @property
    def reference(self) -> Literal["framework", "interpreter"]:
        """Whose values a trace holds."""
        return "framework" if self.framework else "interpreter"

    def trace(self, inputs: Mapping[str, Array]) -> SourceTrace:
        """Compute every value.

        Args:
            inputs: (N, height, width, channels) by the source graph's input names.

        Returns:
            All values of the source graph.

        Raises:
            VerificationError: if the framework's activation of a layer has an unexpected size.
        """
        shown = self.framework(inputs) if self.framework else {}
        trace = SourceTrace(self.graph)
        for node in self.graph.nodes:
            name = node.outputs[0]
            if isinstance(node.op, Input):
                trace.values[name] = inputs[name]
                continue
            is_bit = self.graph.types[name].dtype == DataType.BIT
            if name not in shown or is_bit:  # bits too, for their margins
                operands = [trace.values[operand] for operand in node.inputs]
                trace.values.update(evaluate_node(node, operands, trace.margins))
            if name in shown:
                trace.values[name] = self._framework_value(name, shown[name], inputs)
        return trace

    def outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Compute what the source network gives, as ``trace``, with nothing in between.

        Args:
            inputs: as for ``trace``.

        Returns:
            (N, height, width, channels) by output name.
        """
        names = self.graph.outputs
        shown = self.framework(inputs) if self.framework else {}
        if all(name in shown for name in names):
            return {name: self._framework_value(name, shown[name], inputs) for name in names}
        values = self.trace(inputs).values
        return {name: values[name] for name in names}

    def _framework_value(self, name: str, value: Array, inputs: Mapping[str, Array]) -> Array:
        batch = len(next(iter(inputs.values())))
        kind = self.graph.types[name]
        shape = (batch, *kind.shape)
        array = np.asarray(value, np.float32)
        if kind.dtype == DataType.BIT:  # straight-through idioms round: 0.99999994 is +1
            array = np.rint(array).astype(np.int8)
        if array.size != int(np.prod(shape)):
            raise VerificationError(
                "the framework's activation does not fit the imported layer",
                where=f"layer '{name}'",
                expected=shape,
                got=array.shape,
                hint="check that SRC is the checkpoint that FILE was converted from",
            )
        return array.reshape(shape)
