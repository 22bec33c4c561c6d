"""What layers cost: multiply-accumulates, parameters and their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.constants import weight_words
from phonebit.converter.ir import (
    BatchNorm,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Conv2D,
    Dequantize,
    Divide,
    Epilogue,
    Graph,
    Input,
    Node,
    Operator,
    PRelu,
    ScaleBias,
    TensorType,
)
from phonebit.converter.passes.base import epilogue_of
from phonebit.converter.writer import weights_type
from phonebit.format.contents import CONSTANT_TYPES
from phonebit.format.records import DataType

Convolution = Conv2D | BinaryConv2D | BinaryDepthwiseConv2D


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of one picture in a convolution, padded taps included; else 0."""
    if not isinstance(node.op, Convolution):
        return 0
    height, width, channels = graph.types[node.outputs[0]].shape
    return height * width * channels * int(np.prod(node.op.weights.shape[1:]))


def total_macs(graph: Graph) -> int:
    """Multiply-accumulates of the whole network, for one picture."""
    return sum(macs(graph, node) for node in graph.nodes)


def parameters(op: Operator) -> list[NDArray[Any]]:
    """All arrays that training (or a pass) put into an operator, weights first."""
    arrays: list[NDArray[Any]] = []
    if isinstance(op, Convolution):
        arrays.append(op.weights)
    if isinstance(op, Conv2D) and op.bias is not None:
        arrays.append(op.bias)
    if isinstance(op, BatchNorm):
        arrays += [op.gamma, op.beta, op.mean, op.variance]
    if isinstance(op, Dequantize):
        arrays += [op.scale, op.offset]
    if isinstance(op, Divide):
        arrays.append(op.divisor)
    epilogue: Epilogue | None = getattr(op, "epilogue", None)
    if epilogue is not None:
        for step in epilogue.steps:
            if isinstance(step, ScaleBias):
                arrays += [step.scale, step.bias]
            elif isinstance(step, PRelu):
                arrays += [step.slope] if step.positive is None else [step.slope, step.positive]
        if epilogue.threshold is not None:
            arrays.append(epilogue.threshold)
    return arrays


def parameter_count(op: Operator) -> int:
    """Number of trained numbers in a source operator."""
    return sum(array.size for array in parameters(op))


def float_bytes(op: Operator) -> int:
    """Bytes of a source operator's parameters as float32."""
    return 4 * parameter_count(op)


def weight_bytes(op: Convolution) -> int:
    """Bytes of an engine operator's weights in the file."""
    stored = weights_type(op)
    if stored == DataType.BIT:
        return weight_words(op.weights, isinstance(op, BinaryDepthwiseConv2D)).nbytes
    return op.weights.size * CONSTANT_TYPES[stored].itemsize


def stored_bytes(node: Node) -> int:
    """Bytes of a node's constants in the file, without alignment and sharing."""
    op = node.op
    total = 4 * sum(array.size for array in parameters(op))
    if isinstance(op, Convolution):
        total += weight_bytes(op) - 4 * op.weights.size
    epilogue = epilogue_of(op)
    threshold = epilogue.threshold if epilogue is not None else None
    if threshold is not None and threshold.dtype == np.float32 and not threshold.any():
        total -= 4 * threshold.size  # an absent threshold means zero
    return total


def bytes_moved(graph: Graph) -> int:
    """Bytes that an engine graph reads and writes in a forward pass on one picture.

    Every op reads its inputs and its constants and writes its outputs, each once: what fusion
    saves shows here as it does in the number of ops. Bits are packed, 32 to a word. Caches, padding
    and what a kernel reads twice are not counted.
    """
    total = 0
    for node in graph.nodes:
        if not isinstance(node.op, Input):
            values = {*node.inputs, *node.outputs}
            total += sum(_tensor_bytes(graph.types[name]) for name in values) + stored_bytes(node)
    return total


def _tensor_bytes(kind: TensorType) -> int:
    height, width, channels = kind.shape
    if kind.dtype == DataType.BIT:
        return height * width * -(-channels // 32) * 4
    return height * width * channels * (1 if kind.dtype == DataType.U8 else 4)
