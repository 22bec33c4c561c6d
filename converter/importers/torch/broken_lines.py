"""Clamps and slopes by their algebra, as PACT writes them.

0.5 (|x| - |x - a| + a) is clamp(x, 0, a), 0.5 (x + |x|) is relu(x), and
0.5 (1 + s) x + 0.5 (1 - s) |x| is a leaky ReLU. Float32 rounds such sums in every step; what is
meant is the clamp, and that is what is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.functions import bent
from phonebit.converter.importers.torch.piecewise_functions import number_of
from phonebit.converter.importers.torch.straight_lines import Line
from phonebit.converter.importers.torch.tracked_tensors import BrokenLine, Fact, Value


def broken_line(call: Call, operands: dict[str, Any]) -> BrokenLine | None:
    """A call as straight lines of one tensor.

    Args:
        call: An element-wise call.
        operands: Its arguments by name: values, constant tensors and numbers.

    Returns:
        None if it is no such function.
    """
    values = {name: value for name, value in operands.items() if isinstance(value, Value)}
    if call.dtype != "float32" or any(value.shape != call.shape for value in values.values()):
        return None
    lines = {name: value.as_line() for name, value in values.items()}
    root = next(iter(lines.values())).root
    if any(line.root is not root for line in lines.values()) or root.dtype != "float32":
        return None
    result = _result(call, operands, {name: line.line for name, line in lines.items()})
    return None if result is None else BrokenLine(root, result)


def _result(call: Call, operands: dict[str, Any], lines: dict[str, Line]) -> Line | None:
    if call.op in ("add", "sub", "rsub", "mul", "div"):
        terms = [lines.get(name, operands[name]) for name in ("self", "other")]
        if any(not isinstance(term, Line) and np.size(term) != 1 for term in terms):
            return None
        first, second = (t if isinstance(t, Line) else number_of(t) for t in terms)
        return _arithmetic(call, first, second)
    if call.op == "neg":
        return lines["self"].scaled(-1)
    if len(lines) != 1:
        return None
    pieces = bent(call, operands)
    return None if pieces is None else next(iter(lines.values())).after(pieces)


def _arithmetic(call: Call, first: Line | float, second: Line | float) -> Line | None:
    alpha = number_of(operand) if (operand := call["alpha"]) is not None else 1.0
    if call.op in ("mul", "div"):
        if call.op == "div":
            if isinstance(second, Line) or second == 0 or call["rounding_mode"] is not None:
                return None
            second = 1 / second
        if isinstance(first, Line):
            return None if isinstance(second, Line) else first.scaled(second)
        return second.scaled(first) if isinstance(second, Line) else None
    if call.op == "rsub":
        first, second = second, first
    factor = alpha if call.op == "add" else -alpha
    if isinstance(second, Line):
        second = second.scaled(factor)
        return second.plus(first) if isinstance(first, Line) else second.scaled(1, first)
    return first.scaled(1, factor * second) if isinstance(first, Line) else None


def fact_of(broken: BrokenLine) -> Fact | None:
    """What a clamp or two-sided PReLU are as a function of their tensor; None of other lines."""
    pieces = broken.line.pieces()
    if pieces is None:
        return None
    breaks = tuple(map(float, pieces.thresholds))
    return Fact(broken.root, pieces.evaluate, breaks, pieces=pieces)
