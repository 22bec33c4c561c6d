"""Layers as calls of ONNX's operators, which the rules of all importers translate.

A rule says what a Keras layer is in ONNX's terms. Its calls are translated like those of a file,
and the nodes become part of the Keras graph under the layer's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from phonebit.converter.importers.keras.graph import (
    MAX_NODES,
    LayerContext,
    Tensor,
    UnsupportedError,
)
from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node as OnnxNode
from phonebit.converter.importers.onnx.rules import STANDARD
from phonebit.converter.importers.torch import element_positions
from phonebit.converter.importers.torch.calls import Call, live
from phonebit.converter.importers.torch.program import Program
from phonebit.converter.importers.torch.translation import translate
from phonebit.converter.ir import FloatArray, Graph, Node
from phonebit.converter.ops import Input
from phonebit.errors import ConversionError, UnsupportedLayerError

OPSET: Final = 21
_PATH: Final = "layer"
"""What the nodes of a rule are called by, until they get the layer's name."""


class Layer:
    """One call of a Keras layer, in ONNX's terms.

    Attributes:
        context: The layer.
        config: Its configuration, or the arguments of a recorded function.
        inputs: What it reads, in Keras's axis order, with a batch of one.
    """

    def __init__(
        self, context: LayerContext, inputs: Sequence[Tensor], config: Mapping[str, Any]
    ) -> None:
        self.context = context
        self.config = config
        self._tensors = [context.real(x) for x in inputs]
        self._builder = Builder()
        self.inputs = [
            Call(f"input{i}", "input", None, {}, (1, *x.shape), x.number_type)
            for i, x in enumerate(self._tensors)
        ]
        self._calls = dict(zip(map(id, inputs), self.inputs, strict=True))

    @property
    def input(self) -> Call:
        """The only input."""
        if len(self.inputs) != 1:
            raise UnsupportedError(f"called with {len(self.inputs)} tensors, expected one")
        return self.inputs[0]

    def argument(self, *names: str, default: Any = None) -> Any:
        """The argument of the first of these names that is there, with calls for its tensors."""
        name = next((name for name in names if name in self.config), "")
        return self._with_calls(self.config.get(name, default))

    def _with_calls(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._with_calls(item) for item in value]
        return self._calls[id(value)] if isinstance(value, Tensor) else value

    def weight(self, role: str, shape: tuple[int, ...]) -> FloatArray:
        """A weight in Keras's axis order."""
        return self.context.weight(role, shape)

    def onnx(self, op: str, *operands: Call | ArrayLike | None, **attributes: Any) -> Call:
        """The first result of one of ONNX's operators; arrays and numbers are constants."""
        return self.results(op, *operands, **attributes)[0]

    def results(
        self,
        op: str,
        *operands: Call | ArrayLike | None,
        outputs: Sequence[str] = (_PATH,),
        **attributes: Any,
    ) -> list[Call]:
        """All results of one of ONNX's operators."""
        node = OnnxNode(op, "", OPSET, [], list(outputs), _PATH, attributes)
        self._builder.begin(node)
        node.inputs = [self._operand(operand) for operand in operands]
        made: Any = STANDARD[op](self._builder, node)
        return [made] if isinstance(made, Call) else list(made)

    def _operand(self, operand: Call | ArrayLike | None) -> Call | None:
        if operand is None or isinstance(operand, Call):
            return operand
        array = np.asarray(operand)
        wanted = np.int64 if array.dtype.kind in "iu" else np.float32
        return self._builder.literal(array.astype(wanted))

    def front(self, call: Call) -> Call:
        """A tensor with its channels after the batch, as ONNX has them."""
        rank = len(call.shape)
        return self.onnx("Transpose", call, perm=[0, rank - 1, *range(1, rank - 1)])

    def back(self, call: Call) -> Call:
        """A tensor with its channels last again."""
        rank = len(call.shape)
        return self.onnx("Transpose", call, perm=[0, *range(2, rank), 1])

    def axes(self, value: object, rank: int) -> list[int]:
        """Axes counted from the batch on, none of them the batch.

        Args:
            value: One axis or a list of them.
            rank: Of the tensor, its batch included.
        """
        values = value if isinstance(value, list | tuple) else [value]
        found = [v % rank for v in values if isinstance(v, int) and -rank <= v < rank]
        if len(found) != len(values) or 0 in found:
            raise UnsupportedError(f"axis={value!r}; expected axes after the batch of {rank}")
        return found

    def emit(self, results: Sequence[Call], suffix: str = "", inner: str = "") -> list[Tensor]:
        """Appends the nodes that compute some calls; several are called "output0" and so on."""
        several = len(results) > 1
        return [
            self._emitted(result, f"output{i}" if several else inner, suffix)
            for i, result in enumerate(results)
        ]

    def _emitted(self, result: Call, inner: str, suffix: str) -> Tensor:
        if result.constant:
            raise UnsupportedError("its result does not depend on its input")
        for call in (*self._builder.order, *self.inputs):
            call.users = 0
        program = Program(
            live(self._builder.order, self.inputs, [result]),
            self.inputs,
            [result],
            channels_last={*self.inputs, result},
        )
        try:
            graph = translate(program, _PATH).graph
        except UnsupportedLayerError as error:
            problems = [problem.removeprefix(f"{_PATH}: ") for problem in error.problems]
            raise UnsupportedError("; ".join(problems)) from error
        value = self._splice(graph, inner, suffix)
        return Tensor(value, result.shape[1:])

    def _splice(self, graph: Graph, inner: str, suffix: str) -> str:
        """Appends the nodes of a graph and returns the value that its output is."""
        nodes, context = self.context.graph, self.context
        prefix = "/".join(part for part in (context.name, suffix) if part)
        own = f"{context.name}/{inner}" if inner else context.name
        values = {
            name: tensor.value for name, tensor in zip(graph.inputs, self._tensors, strict=True)
        }
        (output,) = graph.outputs
        if output in values:
            return values[output]
        if len(nodes.nodes) + len(graph.nodes) > MAX_NODES:
            raise ConversionError(f"the model has more than {MAX_NODES} nodes")
        main = _PATH if any(node.name == _PATH for node in graph.nodes) else output
        for node in graph.nodes:
            if isinstance(node.op, Input):
                continue
            name = prefix if node.name == main else _renamed(node.name, prefix)
            value = own if node.value == output else nodes.inner_name(_inner(name, prefix))
            values[str(node.value)] = value
            nodes.used.add(value)
            inputs = [values[each] for each in node.inputs]
            nodes.nodes.append(Node(name, node.op, inputs, value, sources=[context.name]))
        return own


def _renamed(name: str, prefix: str) -> str:
    path, _, rest = name.partition("/")
    return f"{prefix}/{rest or path}"


def _inner(name: str, prefix: str) -> str:
    """What the value of a node is called that is not the layer's own."""
    return f"{name}/value" if name == prefix else name


def needs_map(layer: Layer, axes: int) -> Call:
    """The only input, which must have this many axes between batch and channels."""
    call = layer.input
    if len(call.shape) != axes + 2:
        raise UnsupportedError(
            f"its input has shape {call.shape[1:]}; expected {axes + 1} axes besides the batch"
        )
    return call


Rule = Callable[[Layer], Call | list[Call]]


def by_calls(
    rule: Rule,
    context: LayerContext,
    inputs: Sequence[Tensor],
    config: Mapping[str, Any] | None = None,
    suffix: str = "",
    inner: str = "",
) -> list[Tensor]:
    """The results of a layer that a rule expresses.

    Args:
        rule: What the layer is in ONNX's terms.
        context: Its call.
        inputs: What it reads.
        config: The layer's configuration, unless it is another one.
        suffix: Of its nodes' names.
        inner: What the value of a single result is called after the layer's name.

    Raises:
        UnsupportedError: It cannot be expressed.
    """
    layer = Layer(context, inputs, context.config if config is None else config)
    try:
        made = rule(layer)
    except element_positions.UnsupportedError as error:
        raise UnsupportedError(str(error)) from error
    return layer.emit([made] if isinstance(made, Call) else made, suffix, inner)
