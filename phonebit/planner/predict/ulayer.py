"""µLayer's predictor: the logarithm of a layer's time follows that of its operations.

Source: µLayer (EuroSys '19), section 5, after Neurosurgeon: one regression for each kind of layer
and processor predicts the whole layer; a part takes its share of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.model_table import ModelTable, numbers, table_of


@dataclass(frozen=True)
class LogLine:
    """us = exp(intercept) * operations ** slope.

    Args:
        intercept: Logarithm of the microseconds of one operation.
        slope: 1 where time is proportional to operations.
    """

    intercept: float
    slope: float

    def microseconds(self, operations: float) -> float:
        """The predicted time."""
        return exp(self.intercept + self.slope * log(operations))

    @classmethod
    def fit(cls, operations: ArrayLike, times_us: ArrayLike) -> LogLine:
        """Least squares of logarithms.

        Args:
            operations: Of each sample, above 0.
            times_us: Likewise.
        """
        x, y = np.log(operations), np.log(times_us)
        if np.ptp(x) == 0:
            return cls(float(y.mean() - x.mean()), 1.0)
        slope, intercept = np.polyfit(x, y, 1)
        return cls(float(intercept), float(slope))

    def to_list(self) -> list[float]:
        """Two numbers, as profiles keep them."""
        return [self.intercept, self.slope]

    @classmethod
    def from_list(cls, record: Any) -> LogLine:
        """The inverse.

        Raises:
            InputError: It is not two finite numbers.
        """
        return cls(*numbers(record, 2))


@dataclass(frozen=True)
class UlayerPredictor:
    """µLayer's prediction on one device.

    Args:
        models: Regressions by family of layers, for each processor.
    """

    models: Mapping[Processor, ModelTable[LogLine]]
    name = "ulayer"

    def microseconds(self, layer: LayerShape, processor: Processor, part: OutputPart) -> float:
        """See ``LatencyPredictor``."""
        whole = layer.operations(layer.whole)
        whole_us = table_of(self.models, processor).find(layer.family).microseconds(whole)
        return whole_us * layer.operations(part) / whole

    def microseconds_of_parts(
        self, layer: LayerShape, processor: Processor, parts: Sequence[OutputPart]
    ) -> list[float]:
        """See ``LatencyPredictor``."""
        return [self.microseconds(layer, processor, part) for part in parts]
