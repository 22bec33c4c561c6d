"""The reference interpreter: executes any graph, source or engine, in NumPy.

What each operator computes is its class's ``evaluate``. Arrays are batch-first NHWC; BIT values are
int8 -1 or +1, U8 values uint8, F32 values float32. Binary convolutions are exact integers,
epilogues round to float32 once per arithmetic sign; the order of float sums is NumPy's, which is
why float convolutions are compared within a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from phonebit.converter.ir import Array, Graph, Node, Values
from phonebit.converter.ops import Input
from phonebit.errors import InputError
from phonebit.format.records import DataType

NUMPY_TYPES = {
    DataType.BIT: np.dtype(np.int8),
    DataType.U8: np.dtype(np.uint8),
    DataType.I32: np.dtype(np.int32),
    DataType.F32: np.dtype(np.float32),
}


def run(graph: Graph, inputs: Mapping[str, Array], wanted: Iterable[str] | None = None) -> Values:
    """Executes a graph.

    Args:
        graph: Source or engine graph with known input types.
        inputs: Array (N, H, W, C) for each of the graph's inputs, uint8 or float32 as its type
            says.
        wanted: Names of the values to return; the graph's outputs if not given. Pass
            ``graph.types`` to get every value.

    Returns:
        The wanted values by name, each (N, H, W, C).

    Raises:
        InputError: An input is missing or has another shape or type than the graph declares.
        KeyError: A wanted value does not exist.
    """
    names = list(graph.outputs if wanted is None else wanted)
    last_use = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    keep = set(names)
    values: Values = {}
    for index, node in enumerate(graph.nodes):
        if isinstance(node.op, Input):
            name = node.outputs[0]
            values[name] = _checked_input(graph, name, inputs)
            continue
        values.update(evaluate_node(node, [values[name] for name in node.inputs]))
        for name in set(node.inputs) - keep:
            if last_use[name] == index:
                del values[name]
    return {name: values[name] for name in names}


def _checked_input(graph: Graph, name: str, inputs: Mapping[str, Array]) -> Array:
    kind = graph.types[name]
    if name not in inputs:
        raise InputError("no array for this input", where=name, expected=kind.shape)
    array = np.asarray(inputs[name])
    dtype = NUMPY_TYPES[kind.dtype]
    if array.dtype != dtype:
        raise InputError("wrong element type", where=name, expected=dtype, got=array.dtype)
    if array.ndim != 4 or array.shape[1:] != kind.shape:
        expected = ("N", *kind.shape)
        raise InputError("wrong shape", where=name, expected=expected, got=array.shape)
    return array


def evaluate_node(node: Node, operands: list[Array], margins: Values | None = None) -> Values:
    """Executes one node.

    Args:
        node: Any node but an Input.
        operands: Its input values, in order.
        margins: If given, receives for each BIT value that comes from a float comparison the
            distance of the compared value from its threshold: what a tie is judged by.

    Returns:
        The values that the node defines.
    """
    return node.op.evaluate(node, operands, margins)
