"""Calls of ATen operators: what a program consists of.

Constants are NumPy arrays, so that the rules need no framework; what reads a framework's
programs says how its operators are applied to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

FLOATS: Final = frozenset({"float16", "bfloat16", "float32", "float64"})


@dataclass(eq=False)
class Call:
    """One application of an operator, or a parameter, or an input; ``args`` hold other calls.

    Attributes:
        name: Of the exported node, unique in the program.
        op: The operator without its overload, e.g. "conv2d"; or "input", "parameter", or "empty",
            which stands for any tensor of its shape and type.
        target: The operator on arrays, by its schema's names; for a parameter its array.
        arguments: By the names of the operator's schema, defaults filled in.
        shape: Of the result (its first tensor), with the batch; () where it is no tensor.
        dtype: Element type of the result (its first tensor), e.g. "float32"; None if no tensor.
        scope: Key (unique for each call of a module) and path of the innermost module around it.
        line: The user's source line, or "".
        title: What its author calls the operator, if that is not ATen's name.
        constant: Whether it depends on no input.
        users: How many live calls read it; outputs count too.
    """

    name: str
    op: str
    target: Any
    arguments: dict[str, Any]
    shape: tuple[int, ...]
    dtype: str | None
    scope: tuple[str, str] = ("", "")
    line: str = ""
    title: str = ""
    constant: bool = False
    users: int = 0

    def operands(self) -> Iterator[Call]:
        """The calls whose results it reads."""
        return calls_in(list(self.arguments.values()))

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument)

    def apply(self, arguments: dict[str, Any]) -> Any:
        """Runs the operator on arrays."""
        if self.op == "getitem":
            return arguments["self"][arguments["index"]]
        with np.errstate(all="ignore"):  # any number is tried; what is no number is seen later
            return self.target(**arguments)


def calls_in(value: Any) -> Iterator[Call]:
    """The calls in nested arguments, in order."""
    if isinstance(value, Call):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from calls_in(item)


def replace_calls(value: Any, replace: Any) -> Any:
    """Nested arguments with ``replace(call)`` in place of every call."""
    if isinstance(value, Call):
        return replace(value)
    if isinstance(value, list | tuple):
        return type(value)(replace_calls(item, replace) for item in value)
    return value


def call_key(call: Call) -> Any:
    """Equal for calls that compute the same."""

    def frozen(value: Any) -> Any:
        if isinstance(value, Call):
            return ("call", id(value))
        if isinstance(value, list | tuple):
            return tuple(frozen(item) for item in value)
        if isinstance(value, np.ndarray):  # whose text leaves out what is in the middle
            return (value.shape, value.dtype.str, value.tobytes())
        if isinstance(value, partial):
            return (frozen(value.func), frozen(value.args), frozen(list(value.keywords.items())))
        return (type(value).__name__, str(value))

    arguments = tuple((name, frozen(value)) for name, value in call.arguments.items())
    return (frozen(call.target), call.op, call.shape, str(call.dtype), arguments)


def live(order: list[Call], inputs: list[Call], outputs: list[Call]) -> list[Call]:
    """Those of the calls that the outputs need, in their order, with ``users`` counted."""
    needed = set(inputs)
    waiting = list(outputs)
    while waiting:
        call = waiting.pop()
        if call not in needed:
            needed.add(call)
            waiting += call.operands()
    kept = [call for call in order if call in needed]
    for reader in kept:
        for operand in set(reader.operands()):
            operand.users += 1
    for call in outputs:
        call.users += 1
    return kept
