"""Type inference: shape and element type of every value, and whether they fit together.

Each operator has its own rule (``Operator.types``); what only the file format forbids is checked by
``converter/engine_rules.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NoReturn

from phonebit.converter.ir import Graph, Node, Shape, TensorType
from phonebit.converter.ops import Input
from phonebit.converter.ops.with_epilogue import MAX_EXTENT
from phonebit.errors import ConversionError

MAX_ELEMENTS: Final = 1 << 31


def infer(graph: Graph) -> dict[str, TensorType]:
    """Derives the type of every value from those of the graph's inputs.

    Args:
        graph: Graph whose ``types`` hold at least the inputs.

    Returns:
        The type of every value.

    Raises:
        ConversionError: A value is read before it is written or written twice, shapes do not fit,
            or parameters do not match their channels. The message names the node.
    """
    types: dict[str, TensorType] = {}
    for node in graph.nodes:
        missing = [name for name in node.inputs if name not in types]
        if missing:
            raise ConversionError(f"reads {missing[0]!r} before it is written", where=node.name)
        for name, kind in _node_types(graph, node, types).items():
            if name in types:
                raise ConversionError(f"value {name!r} is written twice", where=node.name)
            _check_extent(node, kind.shape)
            types[name] = kind
    for name in (*graph.inputs, *graph.outputs):
        if name not in types:
            raise ConversionError(f"graph input or output {name!r} is never written")
    return types


def infer_added(graph: Graph, nodes: Iterable[Node]) -> None:
    """Derives the types of what nodes define that were added to a graph, in their order.

    Raises:
        ConversionError: As ``infer``.
    """
    for node in nodes:
        graph.types.update(_node_types(graph, node, graph.types))


def _node_types(graph: Graph, node: Node, types: dict[str, TensorType]) -> dict[str, TensorType]:
    if isinstance(node.op, Input):
        if node.inputs or len(node.outputs) != 1:
            _fail(node, "an Input reads nothing and defines one value")
        name = node.outputs[0]
        if name not in graph.types:
            _fail(node, f"input {name!r} has no type")
        return {name: graph.types[name]}
    minimum = node.op.min_operands
    if len(node.inputs) < minimum:
        _fail(node, "too few operands", expected=f"at least {minimum}", got=len(node.inputs))
    if not node.outputs:
        _fail(node, "defines no value")
    try:
        return node.op.types(node, [types[name] for name in node.inputs])
    except ConversionError as error:
        _fail(node, error.what, expected=error.expected, got=error.got)


def _check_extent(node: Node, shape: Shape) -> None:
    if not all(1 <= extent <= MAX_EXTENT for extent in shape) or math.prod(shape) > MAX_ELEMENTS:
        _fail(node, "tensor too large", expected="1..2^20 a side, 2^31 elements", got=shape)


def _fail(node: Node, what: str, *, expected: object = None, got: object = None) -> NoReturn:
    raise ConversionError(what, where=node.name, expected=expected, got=got)
