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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.kernels import CHANNEL_BLOCK, CpuFacts, GpuDispatch, cpu_kernel
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.model_table import ModelTable, numbers, table_of

FEWEST_FOR_SIZES: Final = 30
"""Samples for five weights: with fewer the sizes of layers that were not seen would mislead."""


@dataclass(frozen=True)
class UnitTime:
    """Microseconds of a basic unit, linear in 1, H, W, IC and OC.

    Args:
        weights: Five.
        least_us: The shortest time that was measured of the kernel: no part is predicted shorter.
    """

    weights: tuple[float, ...]
    least_us: float

    def microseconds(self, units: float, sizes: NDArray[np.float64]) -> float:
        """Time of a part.

        Args:
            units: Basic units that a core executes one after the other.
            sizes: 1, H, W, IC, OC.
        """
        return max(units * float(np.dot(self.weights, sizes)), self.least_us)

    @classmethod
    def fit(
        cls, units: NDArray[np.float64], sizes: NDArray[np.float64], times_us: NDArray[np.float64]
    ) -> UnitTime:
        """Least squares of relative errors; the unit's time is constant where samples are few.

        Args:
            units: (N,) of each sample.
            sizes: (N, 5) likewise.
            times_us: (N,) likewise, above 0.
        """
        relative = sizes * (units / times_us)[:, None]
        if len(units) < FEWEST_FOR_SIZES:
            relative[:, 1:] = 0
        scale = np.maximum(np.abs(relative).max(axis=0), 1e-300)  # else small columns count as zero
        weights = np.linalg.lstsq(relative / scale, np.ones(len(units)), rcond=1e-6)[0] / scale
        return cls(tuple(float(weight) for weight in weights), float(times_us.min()))

    def to_list(self) -> list[float]:
        """Six numbers, as profiles keep them."""
        return [*self.weights, self.least_us]

    @classmethod
    def from_list(cls, record: Any) -> UnitTime:
        """The inverse.

        Raises:
            InputError: It is not six finite numbers.
        """
        *weights, least_us = numbers(record, 6)
        return cls(tuple(weights), least_us)


class Blocks:
    """Eq. 3's counts on one device.

    Args:
        gpu: The GPU's launches.
        cpu: The CPU.
        threads: CPU threads.
    """

    def __init__(self, gpu: GpuDispatch, cpu: CpuFacts, threads: int) -> None:
        self._gpu = gpu
        self._cpu = cpu
        self._threads = threads

    def units(
        self, layer: LayerShape, processor: Processor, part: OutputPart
    ) -> tuple[str, float, NDArray[np.float64]]:
        """Kernel, basic units that a core executes in turn, and the sizes 1, H, W, IC, OC."""
        rows, channels = part.row_end - part.row_begin, part.channel_end - part.channel_begin
        sizes = np.array([1, rows, layer.out_w, sum(layer.operand_channels), channels], np.float64)
        if processor == Processor.GPU:
            launches = self._gpu.launches(layer, part)
            cores = self._gpu.gpu.compute_units
            items = sum(-(-launch.groups // cores) * launch.group_items for launch in launches)
            return launches[-1].choice.kernel, float(items * layer.taps), sizes
        kernel = cpu_kernel(layer, part, self._cpu)
        tile = kernel.pixel_tile
        blocks = -(-rows * layer.out_w // tile) * -(-channels // CHANNEL_BLOCK)
        return kernel.name, float(-(-blocks // self._threads) * tile * layer.taps), sizes


@dataclass(frozen=True)
class CodlPredictor:
    """CoDL's prediction on one device.

    Args:
        blocks: Eq. 3's counts.
        models: t_basicUnit by kernel, for each processor.
    """

    blocks: Blocks
    models: Mapping[Processor, ModelTable[UnitTime]]
    name = "codl"

    def microseconds(self, layer: LayerShape, processor: Processor, part: OutputPart) -> float:
        """See ``LatencyPredictor``."""
        kernel, units, sizes = self.blocks.units(layer, processor, part)
        return table_of(self.models, processor).find(kernel).microseconds(units, sizes)

    def microseconds_of_parts(
        self, layer: LayerShape, processor: Processor, parts: Sequence[OutputPart]
    ) -> list[float]:
        """See ``LatencyPredictor``."""
        return [self.microseconds(layer, processor, part) for part in parts]
