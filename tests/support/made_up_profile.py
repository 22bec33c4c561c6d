"""A device profile without a device: what planning needs, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from phonebit.planner.predict import SharingCost
from phonebit.planner.predict.codl import UnitTime
from phonebit.planner.predict.features import GEOMETRY
from phonebit.planner.predict.finegrained import CorrectedTrend
from phonebit.planner.predict.kernels import CpuFacts, GpuFacts
from phonebit.planner.predict.model_table import ALL, ModelTable
from phonebit.planner.predict.profile import DeviceProfile, ProcessorModels, SharingMode
from phonebit.planner.predict.samples import DeviceFacts
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.trend import PowerLaw
from phonebit.planner.predict.ulayer import LogLine

KEY = "Test GPU | test CPU | 1 thread"
LINE = LogLine(-7.0, 1.0)
NO_TREES = Trees(
    len(GEOMETRY),
    0,
    np.zeros(1, np.int32),
    np.full(1, -1, np.int16),
    np.full(1, np.nan),
    np.zeros(1, np.int32),
    np.zeros(1, np.int32),
    np.zeros(1),
)


def for_all(model: Any) -> ModelTable[Any]:
    return ModelTable({ALL: model})


def made_up_profile() -> DeviceProfile:
    """Both processors take a microsecond for a thousand operations; a meeting takes 5."""
    gpu = GpuFacts("Test GPU", "test", "test", "1", 1, 0, 32768, False)
    models = ProcessorModels(
        for_all(LINE),
        for_all(UnitTime((1e-3, 0.0, 0.0, 0.0, 0.0), 1.0)),
        for_all(CorrectedTrend(PowerLaw((0,), (LINE.intercept, LINE.slope)), NO_TREES)),
        {},
    )
    mode = SharingMode("svm", "polling", 1, SharingCost(5.0), 5.0)
    return DeviceProfile(
        DeviceFacts({1: KEY}, gpu, CpuFacts("avx2", 1)), (mode,), models, {1: models}
    )
