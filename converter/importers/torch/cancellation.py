"""Straight-through estimators: sums in which everything cancels but one term are that term.

``(s - c) + c``, ``s.detach() - c.detach() + c`` and ``x + (s - x)`` all have the forward value s;
float32 rounding makes them s(1 +- 2^-24), which nobody who writes them means.
"""

from __future__ import annotations

import math
from typing import Any, Final

from phonebit.converter.importers.torch.calls import FLOATS, Call

Form = dict[Any, float]
"""A sum of calls (or of None, the number one) with their factors."""

MAX_TERMS: Final = 8
"""Longer sums are no estimators, but chains of residual additions: they count as one term."""

IDEMPOTENT: Final = frozenset({"relu", "relu6", "abs", "sign", "floor", "ceil", "round", "trunc"})
"""Functions that change nothing where they are applied to their own result."""


class Cancellation:
    """Knows every call that was seen as a sum with powers of two as factors."""

    def __init__(self) -> None:
        self._forms: dict[Call, Form] = {}

    def simplified(self, call: Call) -> Call:
        """The call that is left of a sum, or of a function applied twice; or the call itself."""
        if _is_repeated(call):
            return call["self"]  # type: ignore[no-any-return]
        form = self._form(call)
        if form is None:
            return call
        if len(form) == 1:
            term, factor = next(iter(form.items()))
            if term is not None and factor == 1 and _alike(term, call):
                return term  # type: ignore[no-any-return]
        if len(form) <= MAX_TERMS:
            self._forms[call] = form
        return call

    def _form(self, call: Call) -> Form | None:
        if call.dtype not in FLOATS:
            return None
        first, second = self._operand(call["self"]), self._operand(call["other"])
        if call.op == "neg" and first is not None:
            return _scaled(first, -1.0)
        if first is None or second is None:
            return None
        if call.op in ("add", "sub", "rsub"):
            alpha = float(call["alpha"] or 1)
            if not _is_power_of_two(alpha):
                return None
            if call.op == "rsub":
                first, second = second, first
            return _sum(first, _scaled(second, alpha if call.op == "add" else -alpha))
        if call.op in ("mul", "div"):
            for value, number in ((first, second), (second, first)):
                factor = number.get(None) if len(number) == 1 else None
                if factor is not None and _is_power_of_two(factor):
                    if call.op == "mul":
                        return _scaled(value, factor)
                    if number is second:
                        return _scaled(value, 1 / factor)
        return None

    def _operand(self, value: Any) -> Form | None:
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int | float):
            return {None: float(value)}
        if value.dtype not in FLOATS:
            return None
        form: Form = self._forms.get(value, {value: 1.0})
        return form


def _is_repeated(call: Call) -> bool:
    """Whether it does to its operand what was done to that already, as in relu(relu(x))."""
    inner = call["self"]
    if call.op not in IDEMPOTENT or not isinstance(inner, Call) or inner.op != call.op:
        return False
    same = all(inner[name] == value for name, value in call.arguments.items() if name != "self")
    return same and _alike(inner, call)


def _alike(term: Any, call: Call) -> bool:
    return bool(term.shape == call.shape and term.dtype == call.dtype)


def _scaled(form: Form, factor: float) -> Form:
    return {term: value * factor for term, value in form.items()}


def _sum(first: Form, second: Form) -> Form:
    total = dict(first)
    for term, value in second.items():
        total[term] = total.get(term, 0.0) + value
    return {term: value for term, value in total.items() if value != 0}


def _is_power_of_two(value: float) -> bool:
    return value != 0 and math.isfinite(value) and math.frexp(abs(value))[0] == 0.5
