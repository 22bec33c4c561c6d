"""The reference interpreter: executes any graph, source or engine, in NumPy.

It is the definition of what each operator computes. Arrays are batch-first NHWC; BIT values are
int8 -1 or +1, U8 values uint8, F32 values float32. Binary convolutions are exact integers,
epilogues round to float32 once per arithmetic sign; the order of float sums is NumPy's, which is
why float convolutions are compared within a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.infer import PlainOp
from phonebit.converter.ir import (
    AveragePool2D,
    BatchNorm,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    Dequantize,
    Divide,
    Epilogue,
    Graph,
    Input,
    MaxPool2D,
    Node,
    Pad,
    PlaneSum,
    Quantize,
    Reshape,
    SelectChannels,
    Sign,
    Softmax,
)
from phonebit.converter.reference.convolution import convolve, convolve_integers
from phonebit.converter.reference.epilogue import apply_step, as_float, batch_norm, plane_sum
from phonebit.converter.reference.pooling import average_pool, max_pool
from phonebit.errors import InputError
from phonebit.format.records import DataType

Array = NDArray[Any]
Values = dict[str, Array]

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
    op = node.op
    main = operands[0]
    if isinstance(op, Sign):
        return _compare(
            node.outputs[0], as_float(main), np.array(op.threshold, np.float32), margins
        )
    if isinstance(op, MaxPool2D) and main.dtype == np.int8:
        return {node.outputs[0]: max_pool(main, op.window, op.flip)}
    if isinstance(op, PlainOp):
        return {node.outputs[0]: _plain_result(op, operands)}
    if isinstance(op, Input):
        raise TypeError(f"{node.name}: an Input has no operation to execute")
    if isinstance(op, Conv2D):
        result = _convolution(op, main)
    elif isinstance(op, BinaryConv2D):
        result = convolve_integers(main, op.weights, op.window, op.groups, op.pad_value)
    elif isinstance(op, BinaryDepthwiseConv2D):
        channels = main.shape[3]
        result = convolve_integers(main, op.weights, op.window, channels, op.pad_value)
    elif isinstance(op, MaxPool2D):
        result = max_pool(as_float(main), op.window, None)
    elif isinstance(op, AveragePool2D):
        result = average_pool(as_float(main), op.window)
    else:
        result = main
    return _epilogue(node, op.epilogue, result, operands, margins)


def _convolution(op: Conv2D, main: Array) -> Array:
    if main.dtype == np.uint8:
        integers = main.astype(np.int32) * op.input_mul + op.input_add
        return convolve_integers(integers, op.weights, op.window, op.groups, 0)
    sums = convolve(as_float(main), op.weights, op.window, op.groups, op.pad_value)
    if op.bias is not None:
        sums = sums + op.bias
    return sums


def _plain_result(op: PlainOp, operands: list[Array]) -> Array:
    main = operands[0]
    if isinstance(op, Quantize):
        chosen: Array = op.values[np.searchsorted(op.thresholds, as_float(main), side="right")]
        return chosen
    if isinstance(op, PlaneSum):
        return plane_sum(op, operands)
    if isinstance(op, Divide):
        return as_float(main) / op.divisor
    if isinstance(op, SelectChannels):
        selected = np.take(as_float(main), np.maximum(op.indices, 0), axis=3)
        selected[..., op.indices < 0] = 0
        return selected
    if isinstance(op, Concat):
        if any(operand.dtype != np.int8 for operand in operands):
            operands = [as_float(operand) for operand in operands]
        return np.concatenate(operands, axis=3)
    if isinstance(op, Pad):
        # Bits padded with 0 are no longer two-valued: they become float32.
        if main.dtype != np.int8 or op.value not in (-1.0, 1.0):
            main = as_float(main)
        top, left, bottom, right = op.pads
        pads = ((0, 0), (top, bottom), (left, right), (0, 0))
        return np.pad(main, pads, constant_values=main.dtype.type(op.value))
    if isinstance(op, Reshape):
        return main.reshape(main.shape[0], *op.shape)
    if isinstance(op, Softmax):
        value = as_float(main)
        shifted = value - value.max(axis=3, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=3, keepdims=True)
        shares: Array = shifted - np.log(total) if op.log else powers / total
        return shares
    if isinstance(op, Dequantize):
        return as_float(main) * op.scale + op.offset
    assert isinstance(op, BatchNorm)
    return batch_norm(op, as_float(main))


def _epilogue(
    node: Node, epilogue: Epilogue, result: Array, operands: list[Array], margins: Values | None
) -> Values:
    outputs: Values = {}
    threshold = epilogue.threshold
    if node.bits is not None and threshold is not None and threshold.dtype == np.int32:
        return {node.bits: np.where(result >= threshold, np.int8(1), np.int8(-1))}
    value = as_float(result)
    for step in epilogue.steps:
        value = apply_step(step, value, operands)
    if node.value is not None:
        outputs[node.value] = value
    if node.bits is not None and threshold is not None:
        outputs.update(_compare(node.bits, value, threshold, margins))
    return outputs


def _compare(name: str, value: Array, threshold: Array, margins: Values | None) -> Values:
    if margins is not None:
        with np.errstate(invalid="ignore"):
            margins[name] = value - threshold
    return {name: np.where(value >= threshold, np.int8(1), np.int8(-1))}
