"""Fine-Grained Co-execution's predictor: boosted trees that know the kernel and its dispatch.

The trees of a kernel correct a product of powers of operations, bytes and waves of work-groups, so
that layers larger than all that were measured are predicted larger, too; trees alone would not.

Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.planner.plan import OutputPart, Processor
from phonebit.planner.predictors.cpu_kernels import CpuFacts
from phonebit.planner.predictors.features import (
    CPU_DISPATCH,
    GEOMETRY,
    GPU_DISPATCH,
    cpu_features,
    geometry_features,
    gpu_features,
)
from phonebit.planner.predictors.gpu_dispatch import GpuDispatch
from phonebit.planner.predictors.layer_shape import LayerShape
from phonebit.planner.predictors.model_table import ALL, ModelTable, numbers, table_of
from phonebit.planner.predictors.trees import Trees

FEATURES: Final[dict[Processor, tuple[str, ...]]] = {
    Processor.CPU: GEOMETRY + CPU_DISPATCH,
    Processor.GPU: GEOMETRY + GPU_DISPATCH,
}
"""Names of what the trees of a kernel look at; those of all samples look at ``GEOMETRY`` alone."""

TREND: Final = (
    "operations", "outputs", "input_bytes", "output_bytes", "weight_bytes",
    "work_items", "waves", "work_of_item", "units", "rounds",
)  # fmt: skip
"""Features that times are roughly powers of."""

SHRINKING: Final = 0.005
Numbers = NDArray[np.float64]


def trend_columns(processor: Processor, features: int) -> list[int]:
    """Places of the trend's features among the first so many of a processor's."""
    return [place for place, name in enumerate(FEATURES[processor][:features]) if name in TREND]


@dataclass(frozen=True)
class Trend:
    """A product of powers: log(us) is linear in the logarithms of a few features.

    Args:
        columns: Which features.
        weights: The constant term, then the power of each.
    """

    columns: tuple[int, ...]
    weights: tuple[float, ...]

    def logarithms(self, features: Numbers) -> Numbers:
        """Of predicted microseconds, (N,), for (N, F) features."""
        constant, *powers = self.weights
        logs: Numbers = np.log1p(features[:, self.columns]) @ np.array(powers)
        return logs + constant

    @classmethod
    def fit(cls, features: Numbers, logarithms: Numbers, columns: Sequence[int]) -> Trend:
        """Least squares with a little shrinking, since the features follow each other closely."""
        logs = np.log1p(features[:, tuple(columns)])
        middle, scale = logs.mean(axis=0), np.maximum(logs.std(axis=0), 1e-9)
        unit = (logs - middle) / scale
        gram = unit.T @ unit + SHRINKING * len(logs) * np.eye(len(columns))
        powers = np.linalg.solve(gram, unit.T @ (logarithms - logarithms.mean())) / scale
        constant = float(logarithms.mean() - middle @ powers)
        return cls(tuple(columns), (constant, *(float(power) for power in powers)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"columns": list(self.columns), "weights": list(self.weights)}

    @classmethod
    def from_dict(cls, record: Any) -> Trend:
        """The inverse.

        Raises:
            InputError: It is something else.
        """
        columns = record.get("columns") if isinstance(record, dict) else None
        if not isinstance(columns, list) or not all(type(column) is int for column in columns):
            raise InputError("damaged model", where="profile", expected="columns and weights")
        weights = numbers(record.get("weights"), len(columns) + 1)
        return cls(tuple(columns), tuple(weights))


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
        model = cls(Trend.from_dict(record.get("trend")), Trees.from_dict(record["trees"]))
        columns = model.trend.columns
        if columns and not 0 <= min(columns) <= max(columns) < model.trees.features:
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
        """The kernel of a part, and the numbers that ``FEATURES`` names."""
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
        augmented: Whether it knows kernels and dispatch; if not, one model for all kernels looks at
            the geometry alone (the paper's ablation, section 5.5).
    """

    featurizer: Featurizer
    models: Mapping[Processor, ModelTable[CorrectedTrend]]
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
            times[mine] = (
                table_of(self.models, processor).find(str(kernel)).microseconds(features[mine])
            )
        return [float(time) for time in times]
