"""Builds the calls that nodes of an ONNX graph stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.budget import Kind, spend
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.calls import Call, call_key, calls_in
from phonebit.converter.importers.torch.cancellation import Cancellation
from phonebit.converter.importers.torch.constant_work import spend_for
from phonebit.converter.importers.torch.constants import MAX_ELEMENTS, Constants
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Array = NDArray[Any]
Target = Callable[..., Any]

MAX_RANK: Final = 8
MAX_LISTED: Final = 1 << 16
"""Integers that a node reads one by one: sizes, axes, positions."""


class Builder:
    """Makes calls; equal ones are one, and estimators are their forward value.

    Attributes:
        constants: Evaluates the calls that depend on no input.
        order: All calls so far.
        fresh: Calls of the present node; the last of them gets the name of its result.
    """

    def __init__(self) -> None:
        self.constants = Constants()
        self.order: list[Call] = []
        self.fresh: set[Call] = set()
        self._known: dict[Any, Call] = {}
        self._cancellation = Cancellation()
        self._node: Node | None = None
        self._made = 0

    def begin(self, node: Node) -> None:
        """The next calls belong to this node."""
        self._node, self._made = node, 0
        self.fresh.clear()

    def emit(
        self,
        op: str,
        arguments: dict[str, Any],
        target: Target | None,
        shape: Sequence[int],
        dtype: str | None = None,
    ) -> Call:
        """A call of ATen's operator ``op``, or an equal one that is there already.

        Args:
            op: Its name.
            arguments: By ATen's names; operands are calls.
            target: The operator on arrays; None if it is never needed on any.
            shape: Of the result.
            dtype: Of the result; by default that of the first operand.

        Raises:
            UnsupportedError: The result is too large.
            ConversionError: It takes more than a file may ask for.
        """
        operands = list(calls_in(list(arguments.values())))
        size = tuple(int(axis) for axis in shape)
        if math.prod(size) > MAX_ELEMENTS or len(size) > MAX_RANK or min(size, default=0) < 0:
            raise UnsupportedError(f"has a result of shape {size}")
        constant = all(operand.constant for operand in operands)
        if not constant and 0 in size:
            raise UnsupportedError(f"has an empty result, of shape {size}")
        call = Call(
            self._name(op),
            op,
            target,
            arguments,
            size,
            dtype or (operands[0].dtype if operands else None),
            *self._scope(),
            constant=constant,
        )
        key = call_key(call)
        if key not in self._known:
            if constant:
                spend_for(call)
            else:  # where each element lies is computed, and perhaps looked at
                spend(Kind.OPERATIONS, 4 * math.prod(size), call.name)
            self._known[key] = self._cancellation.simplified(call)
            self.order.append(call)
            if self._known[key] is call:
                self.fresh.add(call)
        return self._known[key]

    def parameter(self, array: Array, name: str) -> Call:
        """A stored tensor."""
        call = Call(name, "parameter", array, {}, array.shape, str(array.dtype), constant=True)
        self.order.append(call)
        return call

    def literal(self, array: Array) -> Call:
        """A constant that the program itself names, or that follows from shapes."""
        array = np.asarray(array)
        call = Call(self._name("literal"), "literal", lambda: array, {}, array.shape, None)
        call.dtype, call.constant = str(array.dtype), True
        call.scope, call.title = self._scope()[0], self._scope()[2]
        self.order.append(call)
        return call

    def value(self, call: Call, what: str) -> Array:
        """The array that a call computes.

        Raises:
            UnsupportedError: It depends on an input.
        """
        if not call.constant:
            raise UnsupportedError(f"has {what} that depend on an input; expected constants")
        return np.asarray(self.constants.value(call))

    def integers(self, call: Call, what: str) -> list[int]:
        """The integers that a call computes.

        Raises:
            UnsupportedError: It depends on an input, or they are no integers, or far too many.
        """
        array = self.value(call, what)
        if array.size > MAX_LISTED or array.dtype.kind not in "iub":
            raise UnsupportedError(f"has {what} that are no integers, or more than {MAX_LISTED}")
        return [int(number) for number in array.reshape(-1)]

    def number(self, call: Call, what: str) -> float:
        """The one number that a call computes.

        Raises:
            UnsupportedError: It depends on an input, or there are several.
        """
        array = self.value(call, what)
        if array.size != 1:
            raise UnsupportedError(f"has {array.size} {what}; expected one")
        return float(array.item())

    def _name(self, op: str) -> str:
        """The node's result, which ``named`` gives to the last call, and what leads to it."""
        self._made += 1
        first = next((o for o in self._node.outputs if o), "") if self._node else ""
        return f"{first}/{op}{self._made}"

    def _scope(self) -> tuple[tuple[str, str], str, str]:
        """Scope, source line and title of the present node's calls."""
        if self._node is None:
            return ("", ""), "", ""
        return (self._node.path, self._node.path), "", self._node.title
