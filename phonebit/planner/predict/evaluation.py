"""How well predictors predict samples that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.profile import METHODS, DeviceProfile
from phonebit.planner.predict.samples import PartSample


@dataclass(frozen=True)
class Accuracy:
    """Errors of one predictor over some samples.

    Args:
        threads: CPU threads; 0 for the GPU.
        family: Of layers; "all": any.
        mape: Mean of |predicted - measured| / measured.
        median_error: Its median.
        within_10: Share of samples where it is at most 0.1.
    """

    predictor: str
    processor: str
    threads: int
    family: str
    samples: int
    mape: float
    median_error: float
    within_10: float


@dataclass(frozen=True)
class Prediction:
    """What one predictor says of some samples, next to what was measured."""

    predictor: str
    processor: Processor
    threads: int
    families: tuple[str, ...]
    measured_us: NDArray[np.float64]
    predicted_us: NDArray[np.float64]

    @property
    def errors(self) -> NDArray[np.float64]:
        """|predicted - measured| / measured."""
        relative: NDArray[np.float64] = np.abs(self.predicted_us / self.measured_us - 1)
        return relative

    def accuracies(self) -> list[Accuracy]:
        """For all samples together, then for each family."""
        who = self.predictor, self.processor.name.lower(), self.threads
        accuracies = []
        for family in ("all", *sorted(set(self.families))):
            errors = self.errors[[family in ("all", name) for name in self.families]]
            mape, median_error = float(errors.mean()), float(np.median(errors))
            within_10 = float((errors <= 0.1).mean())
            accuracies.append(Accuracy(*who, family, len(errors), mape, median_error, within_10))
        return accuracies


def evaluate(profile: DeviceProfile, parts: Sequence[PartSample]) -> list[Prediction]:
    """Every predictor on every processor."""
    sides: dict[int, list[PartSample]] = {}
    for sample in parts:
        if sample.is_resolved and sample.cpu_threads in (0, *profile.threads):
            sides.setdefault(sample.cpu_threads, []).append(sample)
    predictions = []
    for threads, own in sorted(sides.items()):
        measured = np.array([sample.us for sample in own])
        families = tuple(sample.layer.family for sample in own)
        for method in METHODS:
            predictor = profile.predictor(method, threads or profile.threads[0])
            side, wanted = own[0].processor, [(sample.layer, sample.computed) for sample in own]
            predicted = predictor.microseconds_of(side, wanted)
            predictions.append(Prediction(method, side, threads, families, measured, predicted))
    return predictions


def typical_errors(predictions: Sequence[Prediction]) -> dict[str, float]:
    """Median error of each method over all processors."""
    errors = {
        method: [of.errors for of in predictions if of.predictor == method] for method in METHODS
    }
    return {method: float(np.median(np.concatenate(of))) for method, of in errors.items() if of}
