"""What the importer knows about one of PyTorch's tensors while it translates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.constants import Constants
from phonebit.converter.importers.torch.element_positions import (
    MAP_AXES,
    Layout,
    UnsupportedError,
    View,
    plain_view,
)
from phonebit.converter.importers.torch.emission import Emission
from phonebit.converter.importers.torch.jumps import LARGEST_KEY, Function, evaluate, keys_of
from phonebit.converter.importers.torch.piecewise_functions import Pieces, identity
from phonebit.converter.importers.torch.straight_lines import Line

Tensor = Any
DEEPEST: Final = 32
"""Operators in front of one another that may be one function: quantizers have about fifteen."""


@dataclass(frozen=True)
class Fact:
    """A tensor as a function of another one, element by element.

    Attributes:
        root: The tensor that it is a function of.
        function: The function, on a one-dimensional float32 array; None if it has
            other constants than single numbers.
        breaks: It is monotone between neighbouring ones of these numbers.
        stepped: Whether it is constant but for jumps.
        pieces: Its pieces, where they are known.
    """

    root: Value
    function: Function | None
    breaks: tuple[float, ...] = ()
    stepped: bool = False
    pieces: Pieces | None = None


@dataclass(frozen=True)
class BrokenLine:
    """A tensor as straight lines of another one, element by element, but for float32's rounding."""

    root: Value
    line: Line


@dataclass(eq=False)
class Value:
    """A tensor of the network that depends on an input.

    Either ``view`` is there, or ``emit`` writes the nodes that compute it, once they are asked for:
    what only leads to a quantizer is never computed as such. Functions of a shared tensor start at
    it: others read it, too, so it is computed anyway, and a sign of it comes out of the same node.
    ``unrounded`` is there for steps: the function of the last tensor before the first of them.
    ``depth`` counts the tensors that wait, one for the other, for ``emit``.
    ``line`` is there where straight lines are known.
    """

    shape: tuple[int, ...]
    dtype: Any
    view: View | None = None
    emit: Callable[[], View] | None = None
    fact: Fact | None = None
    is_shared: bool = False
    unrounded: Callable[[], Fact | None] | None = None
    depth: int = 0
    line: BrokenLine | None = None

    def as_function(self) -> Fact:
        """Itself as a function of what it was made from, or of itself."""
        return self.as_root() if self.fact is None or self.is_shared else self.fact

    def as_root(self) -> Fact:
        """Itself as a function of itself, limited to the range that is known of it."""
        low, high = self.limits()
        return Fact(self, lambda x: np.clip(x, low, high), pieces=identity())

    def as_line(self) -> BrokenLine:
        """Itself as straight lines of what it was made from, or of itself."""
        return (
            BrokenLine(self, Line.identity()) if self.line is None or self.is_shared else self.line
        )

    def limits(self) -> tuple[float, float]:
        """The smallest and largest number that it can have, as far as that is known."""
        if self.fact is None or self.fact.function is None:
            return -np.inf, np.inf
        edges = keys_of(np.array(self.fact.breaks, np.float32))
        ends = np.concatenate([[-LARGEST_KEY, LARGEST_KEY], edges, edges - 1])
        reached = evaluate(self.fact.function, ends)
        if np.isnan(reached).any():
            return -np.inf, np.inf
        return float(reached.min()), float(reached.max())


Result = Value | list[Any] | None
"""What a call returns; None after a call that is not supported."""


@dataclass
class Context:
    """What translating a call may use."""

    batch: int
    emission: Emission
    constants: Constants
    values: dict[Call, Result] = field(default_factory=dict)
    expected_binary: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def operand(self, argument: Any) -> Value:
        """The network's tensor that an argument stands for.

        Raises:
            UnsupportedError: The argument is a constant.
        """
        value = self.values.get(argument) if isinstance(argument, Call) else None
        if not isinstance(value, Value):
            raise UnsupportedError("its first operand does not depend on an input")
        return value

    def constant(self, argument: Any, what: str) -> Tensor:
        """The constant tensor that an argument stands for.

        Raises:
            UnsupportedError: It depends on an input.
        """
        if not isinstance(argument, Call) or not argument.constant:
            raise UnsupportedError(f"its {what} depends on an input; expected a constant")
        return self.constants.value(argument)

    def real(self, value: Value) -> View:
        """The view of a tensor, with the nodes that compute it."""
        if value.view is None:
            assert value.emit is not None
            value.view = value.emit()
        return value.view

    def waiting(self, values: Iterable[Any]) -> int:
        """How deep a tensor would wait that is made of these, see ``Value.depth``.

        Long chains are cut: a tensor that would be deeper than any quantizer is computed, and
        functions start at it. So what is done for each element of a chain does not grow with it.
        """
        pending = [v for v in values if isinstance(v, Value) and v.view is None]
        for value in pending:
            if value.depth >= DEEPEST:
                with suppress(UnsupportedError):  # which is said where its result is needed
                    self.real(value)
                    value.is_shared = True
        return 1 + max((value.depth for value in pending if value.view is None), default=0)

    def result(self, call: Call, value: str, layout: Layout, *, quantized: bool = False) -> Value:
        """The result of a call that is a graph value of its own."""
        view = plain_view(value, call.shape, self.batch, layout)
        return self.viewed(call, view.with_value(value, quantized=quantized))

    @staticmethod
    def array_shape(view: View) -> tuple[int, ...] | None:
        """What ``Graph.arrays`` says of an input or output."""
        shape = view.sample().shape
        return None if len(shape) in (0, 1, MAP_AXES) else shape

    def viewed(self, call: Call, view: View) -> Value:
        """The result of a call that is a view of a graph value."""
        self.emission.record(call, view)
        return Value(call.shape, call.dtype, view)
