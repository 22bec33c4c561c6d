"""What layers cost: multiply-accumulates, parameters and their bytes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from phonebit.converter.ir import Graph, Node, Operator, Shape, TensorType
from phonebit.converter.ops import Input, MatMul
from phonebit.converter.ops.convolution import Convolution
from phonebit.converter.ops.with_epilogue import PoolOperator, epilogue_of
from phonebit.format.records import DataType

MAX_OPERATIONS: Final = 10**12
"""Of a network, for one image: what ``Network.load`` allows for each processor."""


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of an image in a convolution, padded taps included, or a product."""
    if not isinstance(node.op, MatMul | Convolution):
        return 0
    return operations(
        node.op, graph.types[node.outputs[0]].shape, graph.types[node.inputs[0]].shape
    )


def operations(op: Operator, result: Shape, operand: Shape) -> int:
    """Multiply-accumulates, or numbers that a pool reads, for one image."""
    size = math.prod(result)
    if isinstance(op, MatMul):
        return size * operand[2] // op.groups
    if isinstance(op, Convolution):
        return size * math.prod(op.weights.shape[1:])
    return size * math.prod(op.window.kernel) if isinstance(op, PoolOperator) else 0


def total_macs(graph: Graph) -> int:
    """Multiply-accumulates of the whole network, for one image."""
    return sum(macs(graph, node) for node in graph.nodes)


def parameter_count(op: Operator) -> int:
    """Number of trained numbers in a source operator."""
    return sum(array.size for array in op.parameters())


def float_bytes(op: Operator) -> int:
    """Bytes of a source operator's parameters as float32."""
    return 4 * parameter_count(op)


def stored_bytes(node: Node) -> int:
    """Bytes of a node's constants in the file, without alignment and sharing."""
    op = node.op
    total = 4 * sum(array.size for array in op.parameters())
    if isinstance(op, Convolution):
        total += op.weight_bytes - 4 * op.weights.size
    epilogue = epilogue_of(op)
    threshold = epilogue.threshold if epilogue is not None else None
    if threshold is not None and threshold.dtype == np.float32 and not threshold.any():
        total -= 4 * threshold.size  # an absent threshold means zero
    return total


def bytes_moved(graph: Graph) -> int:
    """Bytes that an engine graph reads and writes in an inference on one image.

    Every op reads its inputs and its constants and writes its outputs, each once: what fusion
    saves shows here as it does in the number of ops. Bits are packed, 32 to a word. Caches, padding
    and what a kernel reads twice are not counted.
    """
    total = 0
    for node in graph.nodes:
        if not isinstance(node.op, Input):
            values = {*node.inputs, *node.outputs}
            total += sum(tensor_bytes(graph.types[name]) for name in values) + stored_bytes(node)
    return total


def tensor_bytes(kind: TensorType) -> int:
    """Bytes of an activation of one image; bits are packed, 32 channels to a word."""
    height, width, channels = kind.shape
    if kind.dtype == DataType.BIT:
        return height * width * -(-channels // 32) * 4
    return height * width * channels * (1 if kind.dtype == DataType.U8 else 4)
