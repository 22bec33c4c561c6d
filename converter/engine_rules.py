"""What a graph must keep to so that it can be written as a ``.pbit`` file (docs/format.md).

``converter/infer.py`` checks what is true of every graph; these are the rules that only engine
graphs have to follow: which element types each op reads, how far padding goes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from phonebit.converter.ir import (
    AddTensor,
    AveragePool2D,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    Elementwise,
    Graph,
    Input,
    MaxPool2D,
    MultiplyTensor,
    Node,
    Operator,
    Pad,
    Reshape,
    Round,
    SelectChannels,
    Sigmoid,
    Softmax,
    Step,
    Tanh,
    Window,
)
from phonebit.errors import ConversionError
from phonebit.format.records import DataType, StepKind

BIT, U8, F32 = DataType.BIT, DataType.U8, DataType.F32
WINDOW_OPS: Final = (Conv2D, BinaryConv2D, BinaryDepthwiseConv2D, MaxPool2D, AveragePool2D)
EPILOGUE_OPS: Final = (*WINDOW_OPS, Elementwise)

READABLE: Final[dict[type[Operator], tuple[DataType, ...]]] = {
    BinaryConv2D: (BIT,),
    BinaryDepthwiseConv2D: (BIT,),
    Conv2D: (U8, F32),
    MaxPool2D: (F32, BIT),
    AveragePool2D: (F32,),
    Elementwise: (U8, F32, BIT),
    Concat: (F32, BIT),
    Pad: (F32,),
    Reshape: (F32,),
    SelectChannels: (F32,),
    Softmax: (F32,),
}
"""Element types of the main operands, for each op that a file can hold."""

FUNCTION_KINDS: Final[dict[type[Sigmoid | Tanh | Round], StepKind]] = {
    Sigmoid: StepKind.SIGMOID,
    Tanh: StepKind.TANH,
    Round: StepKind.ROUND,
}
"""Numbers in the file of the steps that have no parameters."""

MAX_ACCUMULATOR: Final = (1 << 31) - 1


def check_engine(graph: Graph) -> None:
    """Checks that a graph with inferred types can be written as a file.

    Raises:
        ConversionError: Lists every rule that the graph breaks, with the node.
    """
    problems = [
        f"{node.name}: {problem}" for node in graph.nodes for problem in node_problems(graph, node)
    ]
    for name in graph.inputs:
        if graph.types[name].dtype not in (U8, F32):
            problems.append(f"input {name}: must be U8 or F32, is {graph.types[name].dtype.name}")
    for name in graph.outputs:
        if graph.types[name].dtype not in (BIT, F32):
            problems.append(f"output {name}: must be BIT or F32, is {graph.types[name].dtype.name}")
    if problems:
        raise ConversionError(problems, where=graph.name)


def node_problems(graph: Graph, node: Node) -> list[str]:
    """Everything that keeps one node out of a file; empty if it fits."""
    op = node.op
    if isinstance(op, Input):
        return []
    if type(op) not in READABLE:
        return [f"{type(op).__name__} is no engine operator"]
    mains = node.inputs if isinstance(op, Concat) else node.inputs[:1]
    kinds = [graph.types[name].dtype for name in mains]
    readable = READABLE[type(op)]
    problems = [f"reads {kind.name}, can read {readable}" for kind in kinds if kind not in readable]
    if len(set(kinds)) > 1:
        problems.append("operands are of different types")
    if isinstance(op, WINDOW_OPS):
        problems += _window_problems(op.window)
    if isinstance(op, Conv2D):
        problems += _conv_problems(op, kinds[0])
    if isinstance(op, BinaryConv2D | BinaryDepthwiseConv2D):
        problems += _sign_problems(op)
    for step in node_steps(node):
        if isinstance(step, AddTensor | MultiplyTensor):
            kind = graph.types[node.inputs[step.operand]].dtype
            if kind != F32:
                problems.append(f"a step reads {kind.name}, can read F32")
    return problems


def node_steps(node: Node) -> list[Step]:
    """The epilogue steps of a node, if its operator has an epilogue."""
    return node.op.epilogue.steps if isinstance(node.op, EPILOGUE_OPS) else []


def padding_fits(window: Window) -> bool:
    """Whether padding is smaller than the dilated kernel, so that no tap row is padding alone."""
    span_h = (window.kernel[0] - 1) * window.dilation[0] + 1
    span_w = (window.kernel[1] - 1) * window.dilation[1] + 1
    top, left, bottom, right = window.pads
    return max(top, bottom) < span_h and max(left, right) < span_w


def _window_problems(window: Window) -> list[str]:
    return [] if padding_fits(window) else [f"padding must be smaller than the kernel: {window}"]


def _sign_problems(op: Conv2D | BinaryConv2D | BinaryDepthwiseConv2D) -> list[str]:
    if np.all(np.abs(op.weights) == 1):
        return []
    return ["weights of an integer convolution must be -1 or +1"]


def _half_problems(op: Conv2D, kind: DataType) -> list[str]:
    with np.errstate(over="ignore"):
        halves = op.weights.astype(np.float16)
    problems = [] if kind == F32 else [f"reads {kind.name} with weights of F16, can read F32"]
    if not np.all(np.isfinite(halves) & (halves == op.weights)):
        problems.append("weights stored as F16 must be finite halves")
    return problems


def _byte_problems(op: Conv2D, kind: DataType) -> list[str]:
    problems = [] if kind == F32 else [f"reads {kind.name} with weights of I8, can read F32"]
    if not np.all((np.abs(op.weights) <= 127) & (np.rint(op.weights) == op.weights)):
        problems.append("weights stored as I8 must be integers from -127 to 127")
    return problems


def _conv_problems(op: Conv2D, kind: DataType) -> list[str]:
    problems = []
    if op.bias is not None:
        problems.append("a bias belongs into the epilogue")
    if op.pad_value != 0:
        problems.append(f"pads with {op.pad_value}, can pad with 0")
    if op.stored_as == DataType.F16:
        problems += _half_problems(op, kind)
    if op.stored_as == DataType.I8:
        problems += _byte_problems(op, kind)
    if kind == U8:
        problems += _sign_problems(op)
        taps = int(np.prod(op.weights.shape[1:]))
        largest = taps * max(abs(op.input_add), abs(255 * op.input_mul + op.input_add))
        if largest > MAX_ACCUMULATOR:
            problems.append(f"the accumulator can reach {largest}, more than 32 bits hold")
    return problems
