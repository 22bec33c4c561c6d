"""Values that depend on no input: weights, buffers, literals and all that is computed from them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call, replace_calls
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.errors import ConversionError

QUANTIZING: Final = frozenset({"sign", "sgn", "where", "gt", "ge", "lt", "le", "heaviside"})
"""Operators that a kernel goes through if the network was trained with binary weights."""

MAX_ELEMENTS: Final = 1 << 28
"""Of one constant: a few words in a file may ask for any size."""


class Constants:
    """Evaluates constant calls in the framework itself, so that no rounding is ever guessed."""

    def __init__(self) -> None:
        self._values: dict[Call, Any] = {}
        self._sound: set[Call] = set()

    def value(self, call: Call) -> Any:
        """The array (or list of arrays) that a constant call computes.

        Raises:
            ConversionError: The framework refuses to compute it.
            UnsupportedError: An element of it is NaN, or one of its operators is for inputs only.
        """
        waiting = [call]
        while waiting:
            top = waiting[-1]
            missing = [o for o in top.operands() if o not in self._values]
            if missing and top not in self._values:
                waiting += missing
                continue
            waiting.pop()
            if top not in self._values:
                self._values[top] = self._evaluated(top)
        value = self._values[call]
        if call in self._sound:
            return value
        if isinstance(value, np.ndarray | np.floating) and (value != value).any():
            raise UnsupportedError(
                f"reads {call.name!r}, which has NaN: the checkpoint is damaged or its training "
                "diverged"
            )
        self._sound.add(call)
        return value

    def _evaluated(self, call: Call) -> Any:
        if call.op == "parameter":
            return call.target
        if call.op == "empty":
            return np.zeros(call.shape, call.dtype)
        if call.target is None and call.op != "getitem":
            raise UnsupportedError(
                f"reads {call.name!r}, which {call.title or call.op} computes from constants "
                "alone; store its result in the model"
            )
        arguments = {
            name: replace_calls(value, self._values.__getitem__)
            for name, value in call.arguments.items()
        }
        try:
            return call.apply(arguments)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise ConversionError(
                f"a constant of the network cannot be computed: {error}", where=call.name
            ) from error

    def compact(self, call: Call) -> Any:
        """A constant operand of element-wise operators, as small as broadcasting allows.

        Returns:
            An array that broadcasts to the constant: without the repetitions of an expand(), and
            of shape (1,) if it is one number. Literals that are the same everywhere are one number,
            too; parameters count by their shape, not by the values that they happen to have.
        """
        tensor = self.value(call)
        if not isinstance(tensor, np.ndarray) or tensor.size == 0:
            return tensor
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.strides)
        tensor = tensor[once]
        first = tensor[(slice(0, 1),) * tensor.ndim].reshape(1)
        is_literal = not self._has(call, "parameter")
        same = tensor.size == 1 or (is_literal and bool((tensor == first).all()))
        return first if same else tensor

    def is_quantized(self, call: Call) -> bool:
        """Whether a sign or a comparison is on the way from the parameters to this constant."""
        return self._has(call, *QUANTIZING)

    @staticmethod
    def _has(call: Call, *ops: str) -> bool:
        seen: set[Call] = set()
        waiting = [call]
        while waiting:
            top = waiting.pop()
            if top.op in ops:
                return True
            if top not in seen:
                seen.add(top)
                waiting += top.operands()
        return False
