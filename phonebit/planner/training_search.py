"""A small search for how to grow trees: each setting is judged by layers that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phonebit.planner.evaluation import predict
from phonebit.planner.samples import PartSample, Samples
from phonebit.planner.training import SETTINGS_GRID, Trainer, TreeSettings, split_by_layer


def search_settings(
    samples: Samples,
    parts: Sequence[PartSample],
    progress: Callable[[str], None] = lambda _text: None,
) -> TreeSettings:
    """The setting of ``SETTINGS_GRID`` with the smallest mean error.

    Args:
        samples: Whose device it is.
        parts: To learn from and judge with; what predictors are tested with later is not among
            them.
        progress: Called with a text before each setting.
    """
    learning, judging = split_by_layer(parts, share=0.25, seed=1)
    best = (float("inf"), TreeSettings())
    for settings in SETTINGS_GRID:
        progress(f"{settings.leaves} leaves, rate {settings.learning_rate}")
        profile = Trainer(samples, settings).fit(learning, samples.handovers)
        errors = []
        for threads in profile.threads:
            own = [sample for sample in judging if sample.threads == threads]
            if own:
                predicted = predict(profile.predictor("finegrained", threads), own)
                measured = np.array([sample.us for sample in own])
                errors.append(float(np.abs(predicted / measured - 1).mean()))
        best = min(best, (float(np.mean(errors)), settings), key=lambda entry: entry[0])
    return best[1]
