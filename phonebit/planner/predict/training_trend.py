"""Fitting trends: both forms of a kernel, and the choice between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from phonebit.planner.predict.trend import CostSum, Numbers, PowerLaw, Trend, products

SHRINKING: Final = 0.005
FOLDS: Final = 4
"""Of layers, to choose a form with."""
ROUNDS: Final = 5
"""Of reweighting."""
TYPICAL: Final = 0.05
"""Relative errors much larger than this count less, and so do layers like no other."""
LEAST_SHARE: Final = 0.7
"""Of the shortest measured time: no part is predicted to take less."""


def fit_trend(
    features: Numbers,
    times: Numbers,
    layers: Sequence[object],
    columns: Sequence[int],
    terms: Sequence[Sequence[int]],
) -> Trend:
    """The trend of a kernel: of both forms the one that predicts unseen layers better.

    Args:
        features: (N, F).
        times: (N,) microseconds.
        layers: (N,) whose parts these are; those of one layer are held out together.
        columns: What the power law looks at.
        terms: What the sum of costs looks at.
    """
    forms: tuple[Callable[[Numbers, Numbers], Trend], ...] = (
        lambda seen, us: fit_power_law(seen, us, columns),
        lambda seen, us: fit_cost_sum(seen, us, terms),
    )
    folds = _folds(layers)
    if folds.max() == 0:  # a single layer
        return forms[0](features, times)
    errors = []
    for fit in forms:
        rest = np.zeros(len(times))
        for fold in range(folds.max() + 1):
            out = folds == fold
            trend = fit(features[~out], times[~out])
            rest[out] = np.abs(trend.logarithms(features[out]) - np.log(times[out]))
        errors.append(float(rest.mean()))
    return forms[int(np.argmin(errors))](features, times)


def fit_power_law(features: Numbers, times: Numbers, columns: Sequence[int]) -> PowerLaw:
    """Non-negative least squares with a little shrinking, since the features follow each other.

    A power below 0 would make up for another one's excess among the layers measured, and for
    nothing elsewhere: of six layers that one kernel served, a seventh was predicted a thousand
    times too slow.
    """
    from scipy.optimize import nnls

    logarithms = np.log(times)
    logs = np.log1p(features[:, tuple(columns)])
    middle, scale = logs.mean(axis=0), np.maximum(logs.std(axis=0), 1e-9)
    shrinking = np.sqrt(SHRINKING * len(logs)) * np.eye(len(columns))
    system = np.vstack([(logs - middle) / scale, shrinking])
    wanted = np.concatenate([logarithms - logarithms.mean(), np.zeros(len(columns))])
    powers = nnls(system, wanted)[0] / scale
    constant = float(logarithms.mean() - middle @ powers)
    return PowerLaw(tuple(columns), (constant, *(float(power) for power in powers)))


def fit_cost_sum(features: Numbers, times: Numbers, terms: Sequence[Sequence[int]]) -> CostSum:
    """Non-negative least squares of relative errors.

    Errors are reweighted until too much and too little count alike, by their ratio, and single
    outliers little.
    """
    from scipy.optimize import nnls

    relative = products(features, terms) / times[:, None]
    scale = np.maximum(relative.mean(axis=0), 1e-30)
    unit = relative / scale
    weights = np.ones(len(times))
    costs = np.zeros(unit.shape[1])
    for _ in range(ROUNDS):
        costs, _norm = nnls(unit * weights[:, None], weights)
        ratio = np.maximum(unit @ costs, 1e-3)
        weights = 1 / np.sqrt(np.abs(np.log(ratio)) + TYPICAL) / np.maximum(ratio, 1)
    least_us = LEAST_SHARE * float(times.min())
    return CostSum(tuple(map(tuple, terms)), tuple(float(cost) for cost in costs / scale), least_us)


def _folds(layers: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(N,) which fold each sample is in, all samples of a layer in the same."""
    number = {layer: place for place, layer in enumerate(dict.fromkeys(layers))}
    folds = min(FOLDS, len(number))
    return np.array([number[layer] % folds for layer in layers])
