"""How long parts of layers take, learnt from measurements of a device: three published ways."""

from __future__ import annotations

from phonebit.planner.predict.kernels import NoKernelError
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.sharing_cost import SharingCost

__all__ = ["LayerShape", "NoKernelError", "SharingCost"]
