"""Recognises live quantizers, functions of the user's own included, by what they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.quantizer_functions import (
    KINDS,
    Quantizer,
    UnsupportedQuantizerError,
    flushed,
    of_step,
)
from phonebit.converter.importers.keras.step_functions import (
    apply,
    find_steps,
    from_ordered,
    ordered,
    simplest,
)
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Quantize

MAX_LEVELS: Final = 16
"""Values of a step function that is found by probing."""

PROBES: Final = np.array([-2.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.5, 0.75, 2.0], np.float32)
"""Their mean is not 0, or a comparison with it would look like a sign."""
LARQ: Final = ("larq", "larq_zoo")
"""Packages whose quantizers are known by their name and configuration."""
CANDIDATES: Final = (
    "none",
    "sign",
    "magnitude_aware_sign",
    "xnor_weight_scale",
    "magnitude_aware_sign_unclipped",
)


def recognise(function: Callable[[Any], Any], name: str, known: Quantizer | None) -> Quantizer:
    """What a live quantizer computes.

    Args:
        function: The quantizer; it takes and gives arrays of the framework.
        name: How the model calls it.
        known: What a quantizer of this name usually computes.

    Returns:
        ``known`` or one of the plain kinds if that is what it computes of a test kernel, else a
        step function found by probing; failing that, a quantizer for kernels only, which are given
        to the function itself.

    Raises:
        UnsupportedQuantizerError: It fails, changes shapes, or gives different results each time.
    """
    function = _without_metrics(function)
    if known is not None and str(getattr(function, "__module__", "")).split(".")[0] in LARQ:
        live = partial(_evaluate, function, name)
        return replace(known, kernel=live) if known.rounding else known
    test = _test_kernel(known)
    result = _evaluate(function, name, test)
    if not np.array_equal(result, _evaluate(function, name, test), equal_nan=True):
        raise UnsupportedQuantizerError(f"quantizer {name} gives other results each time")
    options = [known] if known else []
    for option in (*options, *(KINDS[kind](name, {}) for kind in CANDIDATES)):
        if _agree(option, test, result):
            live = partial(_evaluate, function, name)
            return replace(option, kernel=live) if option.rounding else option
    step = _step_function(partial(_evaluate, function, name))
    if step is not None:
        return of_step(name, simplest(step))
    shown = _evaluate(function, name, PROBES.reshape(1, 1, -1, 1)).reshape(-1)
    pairs = ", ".join(f"{x:g} -> {y:g}" for x, y in zip(PROBES, shown, strict=True))
    problem = f"it is neither a sign nor a step function of up to {MAX_LEVELS} values: {pairs}"
    return Quantizer(name, partial(_evaluate, function, name), problem=problem)


def _without_metrics(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A quantizer that counts flips as one that does not: a call would change what it counts."""
    if not hasattr(function, "flip_ratio"):
        return function
    copy: Any = type(function).from_config(function.get_config())  # type: ignore[attr-defined]
    copy._custom_metrics = None
    return copy  # type: ignore[no-any-return]


def _test_kernel(known: Quantizer | None) -> FloatArray:
    """Numbers around every decision point, as a kernel (1, 1, n, 2).

    The second output channel is doubled, so that a scale per output channel shows.
    """
    numbers = PROBES
    if known is not None and isinstance(known.step, Quantize):
        at = ordered(known.step.thresholds)
        near = [from_ordered(at + offset) for offset in (-1, 0, 1)]
        numbers = np.concatenate([PROBES, *near])
    return np.stack([numbers, 2 * numbers], axis=-1).reshape(1, 1, numbers.size, 2)


def _agree(option: Quantizer, test: FloatArray, result: FloatArray) -> bool:
    # Means and tanh are rounded in another order or way than TensorFlow's.
    tolerance = 1e-5 if option.problem else 0.0
    return np.allclose(result, option.kernel(test), rtol=tolerance, atol=0)


def _evaluate(function: Callable[[Any], Any], name: str, values: FloatArray) -> FloatArray:
    try:
        result = np.asarray(function(values), np.float32)
    except Exception as error:  # user code of any kind
        raise UnsupportedQuantizerError(
            f"quantizer {name} fails on a test array: {error}"
        ) from error
    if result.shape != values.shape:
        raise UnsupportedQuantizerError(f"quantizer {name} changes the shape of its input")
    return result


def _grid() -> FloatArray:
    """Normal numbers up to 1e30 of 8 significant bits, and 8,001 evenly spaced ones within +-4."""
    patterns = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    patterns = patterns[np.isfinite(patterns)]
    spaced = np.linspace(-4, 4, 8001, dtype=np.float32)
    return np.unique(flushed(np.concatenate([patterns[np.abs(patterns) < 1e30], spaced])))


def _step_function(evaluate: Callable[[FloatArray], FloatArray]) -> Quantize | None:
    """The increasing step function that ``evaluate`` is, or None.

    It is one if it increases over a grid, with few values, and gives the same for a number whatever
    other numbers come with it.
    """
    grid = _grid()

    def elementwise(numbers: FloatArray) -> FloatArray:
        return evaluate(numbers.reshape(1, 1, -1, 1)).reshape(-1)

    found = elementwise(grid)
    values = np.unique(found)
    if not 2 <= values.size <= MAX_LEVELS or not np.isfinite(values).all():
        return None
    if np.any(np.diff(found) < 0) or not np.array_equal(found[::-1], elementwise(grid[::-1])):
        return None
    if not np.array_equal(found[::97], elementwise(grid[::97])):
        return None
    step = find_steps(elementwise, values, float(grid[0]), float(grid[-1]))
    return step if np.array_equal(apply(step, grid), found) else None
