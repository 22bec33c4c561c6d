"""How long parts of layers take, learnt from measurements of a device: three published ways."""

from __future__ import annotations

from phonebit.planner.predictors.base import LatencyPredictor
from phonebit.planner.predictors.kernels import NoKernelError
from phonebit.planner.predictors.layer_shape import LayerShape
from phonebit.planner.predictors.sharing_cost import SharingCost

__all__ = ["LatencyPredictor", "LayerShape", "NoKernelError", "SharingCost"]
