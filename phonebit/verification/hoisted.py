"""Signs that the converter moved in front of a pooling, concatenation, reshape or padding.

The source has ``b = sign(steps(pool(x)))``, the file ``b = pool(b')`` with ``b' = sign(steps(x))``
(``phonebit.converter.passes.hoist_signs``). The source never holds b', but its own operators,
applied in the new order, say what it must be: so a wrong threshold shows at its layer, not behind.
"""

from __future__ import annotations

import re
from dataclasses import replace

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Concat, Graph, MaxPool2D, Node, Pad, Reshape
from phonebit.converter.passes.chains import slice_channels
from phonebit.verification.source_trace import Array, SourceTrace

_NAME = re.compile(r"(?P<sign>.+?)(?P<hops>(?:/hoisted(?:/\d+)?(?::\d+)?)+)")
_HOP = re.compile(r"/hoisted(?:/(\d+))?")


def hoisted_sign(name: str, graph: Graph, trace: SourceTrace) -> tuple[Array, Array] | None:
    """What a moved sign must be.

    Args:
        name: the file's name for it: that of the source's sign, and "/hoisted" (with the operand's
            number behind a concatenation) for each operator that it moved over.
        graph: the source graph.
        trace: its values.

    Returns:
        The bits (int8 -1, +1) and the real values whose signs they are; None if the source graph
        has no such sign.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["sign"] not in trace.margins:
        return None
    value = match["sign"]
    chain: list[Node] = []
    for operand in _HOP.findall(match["hops"]):
        node = graph.producer(value)
        while not isinstance(node.op, MaxPool2D | Concat | Reshape | Pad):
            if len(node.inputs) != 1:
                return None
            chain.insert(0, node)
            node = graph.producer(node.inputs[0])
        index = int(operand or 0)
        if index >= len(node.inputs):
            return None
        if isinstance(node.op, Concat):
            begin = sum(graph.types[other].shape[2] for other in node.inputs[:index])
            part = slice(begin, begin + graph.types[node.inputs[index]].shape[2])
            chain = [replace(step, op=slice_channels(step.op, part)) for step in chain]
        value = node.inputs[index]
    result = trace.values[value]
    margins: dict[str, Array] = {}
    for node in chain:
        result = evaluate_node(node, [result], margins)[node.outputs[0]]
    sign = chain[-1].outputs[0]
    return (result, margins[sign]) if sign in margins else None
