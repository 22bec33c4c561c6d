"""µLayer's predictor: the logarithm of a layer's time follows that of its operations.

Source: µLayer (EuroSys '19), section 5, after Neurosurgeon: one regression for each kind of layer
and processor predicts the whole layer; a part takes its share of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.layer_shape import LayerShape

Operations = tuple[int, int]
"""Of the whole layer, and of the part."""


def operations_of(
    layer: LayerShape, _processor: Processor, part: OutputPart
) -> tuple[str, Operations]:
    """The family of a layer, and its operations."""
    return layer.family, (layer.operations(layer.whole), layer.operations(part))


@dataclass(frozen=True)
class LogLine:
    """us = exp(intercept) * operations ** slope."""

    intercept: float
    slope: float

    def microseconds(self, inputs: Sequence[Operations]) -> NDArray[np.float64]:
        """See ``Model``."""
        whole, part = np.array(inputs, np.float64).T
        of_whole = np.exp(self.intercept + self.slope * np.log(whole))
        times: NDArray[np.float64] = of_whole * part / whole
        return times

    @classmethod
    def fit(cls, inputs: Sequence[Operations], times_us: NDArray[np.float64]) -> LogLine:
        """Least squares of logarithms."""
        x, y = np.log([part for _, part in inputs]), np.log(times_us)
        if np.ptp(x) == 0:
            return cls(float(y.mean() - x.mean()), 1.0)
        slope, intercept = np.polyfit(x, y, 1)
        return cls(float(intercept), float(slope))
