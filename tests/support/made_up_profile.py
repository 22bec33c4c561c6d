"""A device profile without a device: what planning needs, for tests."""

from __future__ import annotations

import numpy as np

from phonebit.planner.predict.cost_sum import CostSum
from phonebit.planner.predict.finegrained import CorrectedTrend
from phonebit.planner.predict.kernels import CpuFacts, DeviceFacts, GpuFacts
from phonebit.planner.predict.profile import ALL, DeviceProfile, ProcessorModels
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.ulayer import LogLine

KEY = "Test GPU | test CPU | 1 thread"
LINE = LogLine(-7.0, 1.0)
NO_TREES = Trees(np.full(1, -1, np.int16), np.zeros(0), np.zeros(1, np.float16))
TREND = CostSum((("operations",),), (1e-3,), 1e-3)


def made_up_profile() -> DeviceProfile:
    """Both processors are as fast: by operations, for CoDL by bits; synchronizing takes 5 us."""
    gpu = GpuFacts("Test GPU", "test", "test", "1", 1, 0, 32768, False)
    models = ProcessorModels(
        {ALL: LINE},
        {ALL: CostSum((("epilogue bits",),), (1e-3,), 1.0)},
        {ALL: CorrectedTrend(("operations",), TREND, NO_TREES)},
    )
    device = DeviceFacts({1: KEY}, gpu, CpuFacts("avx2", 1))
    return DeviceProfile(device, {1: SharingCost(5.0, bound_us=5.0)}, models, {1: models})
