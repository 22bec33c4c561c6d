"""CoDL's predictor: the steps of a time are computed, only the unit's time is learnt.

A processor works in rounds: each core takes a block of the output, and every round takes as long as
one block. With the blocks of our kernels (GPU: the tile of a work-group, cores: compute units; CPU:
a tile of pixels by 64 channels, cores: threads) eq. 3 is

    T = ceil(blocks / cores) * (basic units of a block) * t_basicUnit,

where the units of a block are its work-items (CPU: its pixels) times the taps of the window, as in
table 1's row "GEMM", and t_basicUnit is linear in (H, W, IC, OC), learnt for each kernel.

Source: CoDL (MobiSys '22), section 5.2, eq. 3 and table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.kernels import CHANNEL_BLOCK, Processors, cpu_kernel
from phonebit.planner.predict.layer_shape import LayerShape

FEWEST_FOR_SIZES: Final = 30
"""Samples for five weights: with fewer the sizes of layers that were not seen would mislead."""

Units = tuple[float, ...]
"""Basic units that a core executes in turn, then the sizes 1, H, W, IC and OC."""


def units_of(
    processors: Processors, layer: LayerShape, processor: Processor, part: OutputPart
) -> tuple[str, Units]:
    """The kernel of a part, and eq. 3's counts."""
    sizes = 1, part.rows, layer.out_w, sum(layer.operand_channels), part.channels
    if processor == Processor.GPU:
        launches = processors.gpu.launches(layer, part)
        cores = processors.gpu.gpu.compute_units
        items = sum(-(-launch.groups // cores) * launch.group_items for launch in launches)
        return launches[-1].choice.kernel, (items * layer.taps, *sizes)
    kernel = cpu_kernel(layer, part, processors.cpu)
    tile = kernel.pixel_tile
    blocks = -(-part.rows * layer.out_w // tile) * -(-part.channels // CHANNEL_BLOCK)
    return kernel.name, (-(-blocks // processors.threads) * tile * layer.taps, *sizes)


@dataclass(frozen=True)
class UnitTime:
    """Microseconds of a basic unit, linear in 1, H, W, IC and OC.

    Args:
        weights: Five.
        least_us: The shortest time that was measured of the kernel: no part is predicted shorter.
    """

    weights: tuple[float, ...]
    least_us: float

    def __post_init__(self) -> None:
        if len(self.weights) != 5:
            raise InputError("damaged model", expected="5 weights", got=len(self.weights))

    def microseconds(self, inputs: Sequence[Units]) -> NDArray[np.float64]:
        """See ``Model``."""
        table = np.array(inputs, np.float64)
        times: NDArray[np.float64] = table[:, 0] * (table[:, 1:] @ np.array(self.weights))
        return np.maximum(times, self.least_us)

    @classmethod
    def fit(cls, inputs: Sequence[Units], times_us: NDArray[np.float64]) -> UnitTime:
        """Least squares of relative errors; the unit's time is constant where samples are few."""
        table = np.array(inputs, np.float64)
        relative = table[:, 1:] * (table[:, 0] / times_us)[:, None]
        if len(table) < FEWEST_FOR_SIZES:
            relative[:, 1:] = 0
        scale = np.maximum(np.abs(relative).max(axis=0), 1e-300)  # else small columns count as zero
        weights = np.linalg.lstsq(relative / scale, np.ones(len(table)), rcond=1e-6)[0] / scale
        return cls(tuple(float(weight) for weight in weights), float(times_us.min()))
