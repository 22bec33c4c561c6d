"""Calls of ATen operators: what an exported program consists of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Call:
    """One application of an operator, or a parameter, or an input; ``args`` hold other calls.

    Attributes:
        name: Of the exported node, unique in the program.
        op: The operator without its overload, e.g. "conv2d"; or "input", "parameter", or "empty",
            which stands for any tensor of its shape and type.
        target: What to call; for a parameter its tensor.
        arguments: By the names of the operator's schema, defaults filled in.
        shape: Of the result (its first tensor), with the batch; () where it is no tensor.
        dtype: torch.dtype of the result (its first tensor), or None where it is no tensor.
        scope: Key (unique for each call of a module) and path of the innermost module around it.
        line: The user's source line, or "".
        constant: Whether it depends on no input.
        users: How many live calls read it; outputs count too.
    """

    name: str
    op: str
    target: Any
    arguments: dict[str, Any]
    shape: tuple[int, ...]
    dtype: Any
    scope: tuple[str, str] = ("", "")
    line: str = ""
    constant: bool = False
    users: int = 0

    def operands(self) -> Iterator[Call]:
        """The calls whose results it reads."""
        return calls_in(list(self.arguments.values()))

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument)

    def apply(self, arguments: dict[str, Any]) -> Any:
        """Runs the operator in PyTorch."""
        if self.op == "getitem":
            return arguments["self"][arguments["index"]]
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
