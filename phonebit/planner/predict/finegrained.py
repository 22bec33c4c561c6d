"""Fine-Grained Co-execution's predictor: boosted trees that know the kernel and its dispatch.

The trees of a kernel correct a sum of costs of operations, bytes and waves of work-groups, so that
layers larger than all that were measured are predicted larger, too; trees alone would not.

Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from phonebit.errors import InputError
from phonebit.planner.predict.cost_sum import CostSum, Numbers, columns_of
from phonebit.planner.predict.features import Features
from phonebit.planner.predict.trees import Trees

COSTS: Final = (
    (),
    ("kernel_operations",),
    ("kernel_operations", "padding_waste"),
    ("outputs",),
    ("outputs", "padding_waste"),
    ("outputs", "steps"),
    ("outputs", "step_tensors"),
    ("outputs", "writes_values"),
    ("input_bytes",),
    ("output_bytes",),
    ("weight_bytes",),
    ("rows",),
    ("operations",),
    ("units",),
    ("rounds",),
    ("rows", "width", "taps"),
    ("outputs", "words"),
    ("outputs", "word_rest"),
    ("work_items", "words"),
    ("work_items", "word_rest"),
    ("launches",),
    ("groups",),
    ("work_items",),
    ("waves",),
    ("waves", "group_items", "work_of_item"),
)
"""Products of features that cost time in proportion; the empty one is what every part costs. Of a
processor those count whose features it has."""


@dataclass(frozen=True)
class CorrectedTrend:
    """log(us) = trend(features) + trees(features).

    Args:
        features: Names of what the trees look at, in their order.
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
        """See ``Model``."""
        if unknown := sorted(set(self.features).difference(inputs[0])):
            raise InputError(
                "trees look at other features than this version computes",
                where="profile",
                got=", ".join(unknown),
                hint="train it again with `phonebit train-predictor`",
            )
        columns = columns_of(inputs, self.features)
        seen = np.stack(list(columns.values()), axis=1)
        times: Numbers = np.exp(self.trend.logarithms(columns) + self.trees.predict(seen))
        return times
