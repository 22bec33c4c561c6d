"""A network that is planned where it runs: its layers one by one, and whole passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phonebit.devices.loading import EngineOptions
from phonebit.planner.measure.engines import open_measuring_engine, open_probe
from phonebit.planner.measure.measuring import (
    NoiseProbe,
    PassTimes,
    measure_parts,
    measure_pass,
)
from phonebit.planner.plan.execution_plan import ExecutionPlan, PlannedPart, Processor
from phonebit.planner.predict import LayerShape, SharingCost
from phonebit.planner.search.part_times import MeasuredTimes
from phonebit.planner.search.stages import LayerParts

if TYPE_CHECKING:
    from phonebit import _runtime

TURNS: Final = 8
"""Interleaved repetitions of a measurement, of which the least counts."""
PASSES: Final = 12
"""Likewise of whole passes at least, of which the typical one counts."""
PASSES_S: Final = 1.0
"""For so long there are more of them: short passes differ most."""


class NetworkOnDevice:
    """A file on both processors of this machine.

    Args:
        path: The file.
        device: As "gpu:1+cpu".
        threads: Of the CPU.

    Raises:
        DeviceError: There is no such device, or it cannot run the network.
    """

    def __init__(self, path: Path, device: str, threads: int) -> None:
        self._path, self._device = path, device
        self._options = EngineOptions(threads)
        self._engine = open_measuring_engine(path, device, self._options)
        self._planned: dict[tuple[PlannedPart, ...], _runtime.Network] = {}

    @property
    def plan_key(self) -> str:
        """What its plans are kept under."""
        return self._engine.plan_key

    @cached_property
    def probe(self) -> NoiseProbe:
        """Tells whether the device is disturbed."""
        return NoiseProbe(*open_probe(self._device, self._options))

    def sharing_cost(self) -> SharingCost:
        """What a meeting costs, by the probe's layer; passes correct it."""
        [times] = self.probe.measure_times(list(Processor), [self.probe.layer], TURNS)
        return SharingCost(times.sharing_us)

    def part_times(
        self, shapes: Sequence[LayerShape], progress: Callable[[str], None]
    ) -> MeasuredTimes:
        """Times of parts of layers by themselves, measured as they are asked for."""

        def measure(of: LayerParts) -> tuple[float, float]:
            progress(self._engine.layers[of.layer].name)
            once = partial(measure_parts, self._engine, of.layer, of.cpu, of.gpu, repeats=1)
            at_work = [side for side, _ in of.sides]
            [times] = self.probe.measure_times(at_work, [once], TURNS)
            return times.cpu_us, times.gpu_us

        return MeasuredTimes(shapes, measure)

    def passes(self, plans: Sequence[ExecutionPlan]) -> list[PassTimes]:
        """Times of typical whole passes as planned, which take turns."""
        known, self._planned = self._planned, {}
        for plan in plans:
            self._planned[plan.parts] = known.get(plan.parts) or open_measuring_engine(
                self._path, self._device, self._options, plan
            )
        del known  # networks that are not asked for any more
        distinct = list(self._planned)
        measures = [partial(measure_pass, network) for network in self._planned.values()]
        times = self.probe.measure_passes(measures, PASSES, PASSES_S)
        return [times[distinct.index(plan.parts)] for plan in plans]
