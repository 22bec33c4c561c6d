"""What a graph must keep to so that it can be written as a ``.pbit`` file (docs/format.md).

``converter/infer.py`` checks what is true of every graph; these are the rules that only engine
graphs have to follow. Those of one operator are its class's ``reads`` and ``problems``.
"""

from __future__ import annotations

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Input
from phonebit.converter.ops.base import BIT, F32, U8, EngineOperator
from phonebit.converter.ops.epilogue import TensorOp
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.errors import ConversionError


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
    if not isinstance(op, EngineOperator):
        return [f"{type(op).__name__} is no engine operator"]
    kinds = [graph.types[name].dtype for name in node.main_inputs]
    readable = op.reads
    problems = [f"reads {kind.name}, can read {readable}" for kind in kinds if kind not in readable]
    if len(set(kinds)) > 1:
        problems.append("operands are of different types")
    problems += op.problems(kinds[0])
    for step in op.epilogue.steps if isinstance(op, EpilogueOperator) else []:
        if isinstance(step, TensorOp):
            kind = graph.types[node.inputs[step.operand]].dtype
            if kind != F32:
                problems.append(f"a step reads {kind.name}, can read F32")
    return problems
