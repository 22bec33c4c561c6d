"""Fine-Grained Co-execution's predictor: boosted trees that know the kernel and its dispatch.

The trees of a kernel correct a sum of costs of operations, bytes and waves of work-groups, so that
layers larger than all that were measured are predicted larger, too; trees alone would not.

Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phonebit.errors import InputError
from phonebit.planner.predict.features import Features
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.trend import CostSum, Numbers


@dataclass(frozen=True)
class CorrectedTrend:
    """log(us) = trend(features) + trees(features).

    Args:
        features: Names of what the trees look at, in their order.
        trend: What carries over to layers larger than all that were measured.
        trees: What is left of the logarithm.
    """

    features: tuple[str, ...]
    trend: CostSum
    trees: Trees

    def __post_init__(self) -> None:
        if self.trees.feature.max() >= len(self.features):
            raise InputError("damaged trees: features outside of the row")
        if not {name for term in self.trend.terms for name in term} <= set(self.features):
            raise InputError("damaged model: a trend over other features")

    def microseconds(self, inputs: Sequence[Features]) -> Numbers:
        """See ``Model``.

        Raises:
            InputError: The model is of a version that computes other features.
        """
        try:
            columns = columns_of(inputs, self.features)
        except KeyError as error:
            raise InputError(
                "trees look at other features than this version computes",
                where="profile",
                got=str(error),
                hint="train it again with `phonebit train-predictor`",
            ) from None
        seen = np.stack(list(columns.values()), axis=1)
        times: Numbers = np.exp(self.trend.logarithms(columns) + self.trees.predict(seen))
        return times


def columns_of(inputs: Sequence[Features], names: Sequence[str]) -> dict[str, Numbers]:
    """The named features of some parts."""
    return {name: np.array([values[name] for values in inputs], np.float64) for name in names}
