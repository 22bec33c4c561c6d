"""Fine-Grained Co-execution's predictor: boosted trees that know the kernel and its dispatch.

The trees of a kernel correct a trend over operations, bytes and waves of work-groups, so that
layers larger than all that were measured are predicted larger, too; trees alone would not. Where
few layers were measured neither knows how fast a kernel can be, so its measured rates are a limit.

Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.features import (
    GEOMETRY,
    cpu_features,
    geometry_features,
    gpu_features,
)
from phonebit.planner.predict.kernels import CpuFacts, GpuDispatch
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.model_table import ALL, ModelTable, table_of
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.trend import Numbers, Trend, trend_from_dict

RATE_REACH: Final = 1.2
"""No part is predicted to be computed at more than this many times the highest measured rate of its
kernel. Profiles of 55 layers were wrong by more than a factor of 1.65 for 22 % of parts without a
limit, for 16 % with it (mean of logarithms 0.35 and 0.28); of 300 layers on it changes nothing."""


@dataclass(frozen=True)
class CorrectedTrend:
    """log(us) = trend(features) + trees(features).

    Args:
        trend: What carries over to layers larger than all that were measured.
        trees: What is left of the logarithm.
    """

    trend: Trend
    trees: Trees

    def microseconds(self, features: Numbers) -> Numbers:
        """Predicted times.

        Args:
            features: (N, F); the trees say how many of the F they look at.
        """
        seen = features[:, : self.trees.features]
        times: Numbers = np.exp(self.trend.logarithms(seen) + self.trees.predict(seen))
        return times

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"trend": self.trend.to_dict(), "trees": self.trees.to_dict()}

    @classmethod
    def from_dict(cls, record: Any) -> CorrectedTrend:
        """The inverse.

        Raises:
            InputError: It is something else.
        """
        if not isinstance(record, dict) or not isinstance(record.get("trees"), dict):
            raise InputError("damaged model", where="profile", expected="a trend and trees")
        model = cls(trend_from_dict(record.get("trend")), Trees.from_dict(record["trees"]))
        if not model.trend.reads <= set(range(model.trees.features)):
            raise InputError("damaged model: a trend over other features", where="profile")
        return model


class Featurizer:
    """Features of parts on one device.

    Args:
        gpu: The GPU's launches.
        cpu: The CPU.
        threads: CPU threads.
    """

    def __init__(self, gpu: GpuDispatch, cpu: CpuFacts, threads: int) -> None:
        self._gpu = gpu
        self._cpu = cpu
        self._threads = threads

    def features(
        self, layer: LayerShape, processor: Processor, part: OutputPart
    ) -> tuple[str, list[float]]:
        """The kernel of a part, and the numbers that ``trend.FEATURES`` names."""
        if processor == Processor.GPU:
            kernel, dispatch = gpu_features(layer, part, self._gpu)
        else:
            kernel, dispatch = cpu_features(layer, part, self._cpu, self._threads)
        return kernel, [float(value) for value in geometry_features(layer, part)] + dispatch


@dataclass(frozen=True)
class FineGrainedPredictor:
    """Fine-Grained Co-execution's prediction on one device.

    Args:
        featurizer: Features of parts.
        models: By kernel, for each processor.
        rates: Operations a microsecond, the most that were measured, by kernel, for each processor.
        augmented: Whether it knows kernels and dispatch; if not, one model for all kernels looks at
            the geometry alone (the paper's ablation, section 5.5).
    """

    featurizer: Featurizer
    models: Mapping[Processor, ModelTable[CorrectedTrend]]
    rates: Mapping[Processor, Mapping[str, float]]
    augmented: bool = True
    name = "finegrained"

    def microseconds(self, layer: LayerShape, processor: Processor, part: OutputPart) -> float:
        """See ``LatencyPredictor``."""
        return self.microseconds_of_parts(layer, processor, [part])[0]

    def microseconds_of_parts(
        self, layer: LayerShape, processor: Processor, parts: Sequence[OutputPart]
    ) -> list[float]:
        """See ``LatencyPredictor``."""
        found = [self.featurizer.features(layer, processor, part) for part in parts]
        features = np.array([values for _, values in found], np.float64)
        kernels = np.array([kernel if self.augmented else ALL for kernel, _ in found])
        times = np.zeros(len(parts))
        for kernel in dict.fromkeys(kernels):
            mine = kernels == kernel
            model = table_of(self.models, processor).find(str(kernel))
            times[mine] = model.microseconds(features[mine])
            rate = self.rates[processor].get(str(kernel))
            if rate is not None:
                operations = features[mine, GEOMETRY.index("operations")]
                times[mine] = np.maximum(times[mine], operations / (RATE_REACH * rate))
        return [float(time) for time in times]
