"""Sums of costs: of features of a part, fitted to measured times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.planner.predict.features import Features

Numbers = NDArray[np.float64]
Columns = Mapping[str, Numbers]
"""Values of each feature, one for each part."""
Terms = tuple[tuple[str, ...], ...]
"""Products of features."""

ROUNDS: Final = 5
"""Of reweighting."""
TYPICAL: Final = 0.05
"""Relative errors much larger than this count less, and so do layers like no other."""
MIN_SHARE: Final = 0.7
"""Of the shortest measured time: no part is predicted to take less."""


@dataclass(frozen=True)
class CostSum:
    """A sum of costs: so much for every operation, byte, wave, and for the part itself.

    A part of half the rows costs half, plus what parts cost.

    Args:
        terms: Products of features; each costs in proportion.
        costs: Microseconds of one of each, 0 or more.
        least_us: No part takes less.
    """

    terms: Terms
    costs: tuple[float, ...]
    least_us: float

    def __post_init__(self) -> None:
        is_sound = len(self.costs) == len(self.terms) and min(self.costs, default=0.0) >= 0
        if not (is_sound and self.least_us > 0):
            raise InputError("damaged model", expected="a cost of each term, none below 0")

    def logarithms(self, columns: Columns) -> Numbers:
        """Of predicted microseconds."""
        us = products(columns, self.terms) @ np.array(self.costs)
        logs: Numbers = np.log(np.maximum(us, self.least_us))
        return logs

    def microseconds(self, inputs: Sequence[Features]) -> Numbers:
        """See ``Model``; what a part does not have costs nothing."""
        names = {name for term in self.terms for name in term}
        times: Numbers = np.exp(self.logarithms(columns_of(inputs, names)))
        return times


def products(columns: Columns, terms: Terms) -> Numbers:
    """(N, T): each term's product of features; 1 of the empty term."""
    count = len(next(iter(columns.values())))
    ones = np.ones(count)
    return np.stack([math.prod((columns[name] for name in term), start=ones) for term in terms], 1)


def fit_cost_sum(columns: Columns, times: Numbers, terms: Terms) -> CostSum:
    """Non-negative least squares of relative errors.

    Errors are reweighted until too much and too little count alike, by their ratio, and single
    outliers little. A cost below 0 would make up for another one's excess among the layers
    measured, and for nothing elsewhere. Terms with features that there are not are left out.
    """
    from scipy.optimize import nnls

    terms = tuple(term for term in terms if columns.keys() >= set(term))
    relative = products(columns, terms) / times[:, None]
    scale = np.maximum(relative.mean(axis=0), 1e-30)
    unit = relative / scale
    weights = np.ones(len(times))
    costs = np.zeros(unit.shape[1])
    for _ in range(ROUNDS):
        costs, _norm = nnls(unit * weights[:, None], weights)
        ratio = np.maximum(unit @ costs, 1e-3)
        weights = 1 / np.sqrt(np.abs(np.log(ratio)) + TYPICAL) / np.maximum(ratio, 1)
    least_us = MIN_SHARE * float(times.min())
    return CostSum(terms, tuple(float(cost) for cost in costs / scale), least_us)


def columns_of(inputs: Sequence[Features], names: Iterable[str]) -> dict[str, Numbers]:
    """The named features of some parts; 0 of what a part does not have."""
    return {name: np.array([of.get(name, 0.0) for of in inputs], np.float64) for name in names}
