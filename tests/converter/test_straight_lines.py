"""Straight lines by their algebra: sums and absolute values of one number, and clamps in them."""

from __future__ import annotations

import numpy as np
import pytest

from phonebit.converter.importers.torch.piecewise_functions import Pieces, clamped, two_slopes
from phonebit.converter.importers.torch.straight_lines import Line

X = Line.identity()
NUMBERS = np.linspace(-4, 4, 161).astype(np.float32)
ABS = two_slopes(np.full(1, -1, np.float32))


def absolute(line: Line) -> Line:
    found = line.after(ABS)
    assert found is not None
    return found


def pact(limit: float) -> Line:
    """0.5 (|x| - |x - a| + a)."""
    inner = absolute(X.scaled(1, -limit)).scaled(-1)
    return absolute(X).plus(inner).scaled(0.5, 0.5 * limit)


def leaky(slope: float) -> Line:
    return X.scaled((1 + slope) / 2).plus(absolute(X).scaled((1 - slope) / 2))


CASES: dict[str, tuple[Line, Pieces | None]] = {
    "PACT": (pact(1.75), clamped(0, 1.75)),
    "PACT with any limit": (pact(float(np.float32(1.1))), clamped(0, np.float32(1.1))),
    "relu": (X.plus(absolute(X)).scaled(0.5), clamped(0, None)),
    "hardtanh": (
        absolute(X.scaled(1, 1)).plus(absolute(X.scaled(1, -1)).scaled(-1)).scaled(0.5),
        clamped(-1, 1),
    ),
    "minimum with 2": (X.scaled(-1, 2).relu().scaled(-1, 2), clamped(None, 2)),
    "leaky relu": (leaky(0.25), two_slopes(np.full(1, 0.25, np.float32))),
    "absolute value": (absolute(X), ABS),
    "clamp of a clamp": (pact(3).after(clamped(1, None)) or X, clamped(1, 3)),
    "a clamp and a half": (pact(2).scaled(1.5), None),
    "a bend at 1": (X.scaled(1, -1).relu(), None),
    "three slopes": (pact(2).plus(X), None),
    "the number itself": (X.scaled(2).plus(X.scaled(-1)), None),
    "a constant": (X.plus(X.scaled(-1)), None),
}


@pytest.mark.parametrize("case", CASES)
def test_clamps_and_slopes_are_found_in_sums_of_absolute_values(case: str) -> None:
    line, expected = CASES[case]
    found = line.pieces()
    if expected is None:
        assert found is None
        return
    assert found is not None
    np.testing.assert_array_equal(found.thresholds, expected.thresholds)
    np.testing.assert_array_equal(found.evaluate(NUMBERS), expected.evaluate(NUMBERS))


def test_lines_are_what_their_formula_is() -> None:
    x = NUMBERS.astype(np.float64)
    line = pact(2).plus(X.scaled(-0.5)).after(clamped(-0.5, 0.75))
    assert line is not None
    part = np.searchsorted(line.knots, x)
    expected = np.clip(np.clip(x, 0, 2) - x / 2, -0.5, 0.75)
    np.testing.assert_allclose(line.slopes[part] * x + line.offsets[part], expected, atol=1e-12)
