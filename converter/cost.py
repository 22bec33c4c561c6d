"""What layers cost: multiply-accumulates, parameters and their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import (
    BatchNorm,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Conv2D,
    Dequantize,
    Epilogue,
    Graph,
    Node,
    Operator,
    PRelu,
    ScaleBias,
)

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
    epilogue: Epilogue | None = getattr(op, "epilogue", None)
    if epilogue is not None:
        for step in epilogue.steps:
            if isinstance(step, ScaleBias):
                arrays += [step.scale, step.bias]
            elif isinstance(step, PRelu):
                arrays.append(step.slope)
        if epilogue.threshold is not None:
            arrays.append(epilogue.threshold)
    return arrays


def parameter_count(op: Operator) -> int:
    """Number of trained numbers in a source operator."""
    return sum(array.size for array in parameters(op))


def float_bytes(op: Operator) -> int:
    """Bytes of a source operator's parameters as float32."""
    return 4 * parameter_count(op)
