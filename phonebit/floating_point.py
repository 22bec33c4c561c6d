"""How NumPy's arithmetic rounds while PhoneBit computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from phonebit.compiled import load_runtime

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def rounds_by_default(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Makes a function compute as IEEE 754 says by default, whatever its caller has set.

    Rounding to nearest, subnormal numbers kept. Thresholds of a converted network are found by
    evaluating float32 arithmetic, so a caller who rounds otherwise (``fesetround``) or flushes
    subnormal numbers to zero (``torch.set_flush_denormal``) would change them. The caller's state
    is handed back, also after an exception.
    """

    @wraps(function)
    def guarded(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with load_runtime().FloatingPointScope():
            return function(*args, **kwargs)

    return guarded
