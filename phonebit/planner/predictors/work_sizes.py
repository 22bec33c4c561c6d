"""How many work-items a kernel is launched with, and where its channels may be cut.

The header of a kernel file is the only place where both are written, as ``@geometry`` and
``@channels`` (bnn_kernels/README.md); the runtime evaluates the same lines in
``runtime/opencl/geometry.cpp``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from phonebit.bnn_kernels.sources import kernel_paths
from phonebit.errors import InputError

_GEOMETRY: Final = re.compile(r"^// @geometry\s+global = \((.*)\), local = \((.*)\)$", re.MULTILINE)
_CHANNELS: Final = re.compile(r"^// @channels\s+(.*)$", re.MULTILINE)
_CALLS: Final[dict[str, Callable[[float, float], float]]] = {
    "roundup": lambda value, multiple: math.ceil(value / multiple) * multiple,
    "max": max,
    "min": min,
}
_OPERATORS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

Extent = tuple[int, int, int]
Names = Mapping[str, int]
Expression = Callable[[Names], float]


@dataclass(frozen=True)
class WorkSizes:
    """The parsed lines of one kernel.

    Args:
        kernel: Whose they are.
        global_sides: Expressions, one to three.
        local_sides: As many.
        grain: What the first channel of a part has to be a multiple of; None: the kernel computes
            all channels or none.
    """

    kernel: str
    global_sides: tuple[Expression, ...]
    local_sides: tuple[Expression, ...]
    grain: Expression | None

    @classmethod
    def parse(cls, kernel: str, text: str) -> WorkSizes:
        """Reads the header in a kernel file's text.

        Raises:
            InputError: There is no @geometry line, or a line is not of README's form.
        """
        found = _GEOMETRY.search(text)
        if found is None:
            raise InputError("no @geometry line", where=f"kernel {kernel}")
        work, group = (_expressions(kernel, part) for part in found.groups())
        if len(work) != len(group) or not 1 <= len(work) <= 3:
            raise InputError(
                "not a @geometry line",
                where=f"kernel {kernel}",
                expected="as many global as local sizes, at most 3",
                got=found.group(0),
            )
        channels = _CHANNELS.search(text)
        grain = None if channels is None else _expressions(kernel, channels.group(1))[0]
        return cls(kernel, work, group, grain)

    def evaluate(self, names: Names) -> tuple[Extent, Extent]:
        """Global and local work size.

        Args:
            names: ``pixels``, ``channels`` and every define and tunable that the line uses.

        Returns:
            Three sides each; those that the kernel does not use are 1.

        Raises:
            InputError: The line uses something else.
        """
        try:
            return _extent(self.global_sides, names), _extent(self.local_sides, names)
        except KeyError as error:
            raise self._unknown(error) from None

    def channel_grain(self, names: Names) -> int:
        """What the first channel of a part has to be a multiple of; 0: there are no such parts.

        Args:
            names: The kernel's tunables.

        Raises:
            InputError: The line uses something else.
        """
        try:
            return 0 if self.grain is None else int(self.grain(names))
        except KeyError as error:
            raise self._unknown(error) from None

    def _unknown(self, error: KeyError) -> InputError:
        return InputError("unknown name in a header", where=f"kernel {self.kernel}", got=str(error))


@cache
def work_sizes(kernel: str) -> WorkSizes:
    """The lines of one of bnn_kernels' files."""
    return WorkSizes.parse(kernel, kernel_paths()[kernel].read_text(encoding="utf-8"))


def _extent(sides: tuple[Expression, ...], names: Names) -> Extent:
    values = [int(side(names)) for side in sides]
    x, y, z = values + [1] * (3 - len(values))
    return x, y, z


def _expressions(kernel: str, text: str) -> tuple[Expression, ...]:
    try:
        parsed = ast.parse(f"({text},)", mode="eval").body
    except SyntaxError:
        raise InputError("not an expression", where=f"kernel {kernel}", got=text) from None
    sides = parsed.elts if isinstance(parsed, ast.Tuple) else [parsed]
    return tuple(_expression(kernel, side) for side in sides)


def _expression(kernel: str, node: ast.expr) -> Expression:
    """A function of the names in it: of numbers, names, + - * / and four functions."""
    match node:
        case ast.Constant(value=int(number)):
            return lambda _names: number
        case ast.Name(id=name):
            return lambda names: names[name]
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            apply = _OPERATORS[type(operation)]
            a, b = _expression(kernel, left), _expression(kernel, right)
            return lambda names: apply(a(names), b(names))
        case ast.Call(func=ast.Name(id=name), args=[one]) if name == "ceil":
            inner = _expression(kernel, one)
            return lambda names: math.ceil(inner(names))
        case ast.Call(func=ast.Name(id=name), args=[first, second]) if name in _CALLS:
            call = _CALLS[name]
            a, b = _expression(kernel, first), _expression(kernel, second)
            return lambda names: call(a(names), b(names))
    raise InputError("unknown form in a header", where=f"kernel {kernel}", got=ast.unparse(node))
