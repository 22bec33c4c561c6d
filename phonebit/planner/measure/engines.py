"""What decides about kernels on a device, and loaded networks that are measured there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phonebit.devices.loading import EngineOptions, Precision, open_engine
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.measuring import (
    PROBE,
    NoiseProbe,
    PassTimes,
    measure_parts,
    measure_pass,
)
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.plan.execution_plan import ExecutionPlan, PlannedPart, Processor
from phonebit.planner.predict.kernels import CpuFacts, GpuFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import MeasuredTimes
from phonebit.planner.search.stages import LayerParts, as_plan, on_one

if TYPE_CHECKING:
    from phonebit import _runtime

TURNS: Final = 8
"""Interleaved repetitions of a measurement, of which the minimum counts."""
PASSES: Final = 12
"""Likewise of whole inferences at least, of which the typical one counts."""
PASSES_S: Final = 1.0
"""For so long there are more of them: short passes differ most."""


def gpu_facts(device: _runtime.GpuDevice, tuning: str) -> GpuFacts:
    """Facts about a GPU, with the lines of a tuning table that fit it."""
    return GpuFacts(
        device.name,
        device.vendor,
        device.family,
        device.driver_version,
        device.compute_units,
        device.clock_mhz,
        device.local_bytes,
        bool(device.capabilities["images"]),
    ).with_tuning(tuning)


def cpu_facts(isa: str, cores: int, probe_kernel: str) -> CpuFacts:
    """Facts about a CPU, of which the kernel of ``PROBE`` is known."""
    return CpuFacts(isa, cores, "neoncnt" not in probe_kernel)


def open_measuring_engine(
    path: Path, device: str, options: EngineOptions, plan: ExecutionPlan | None = None
) -> _runtime.Network:
    """Loads a file; on both processors without a plan, all of it on the GPU.

    Layers are measured one by one in parts of the caller's choice, so no plan is missing.
    """
    if plan is None and "+" in device:
        layers = NetworkGraph.of(read_contents(path)).layers
        plan = as_plan([on_one(layer, Processor.GPU) for layer in layers], device, "user", 0.0)
    return open_engine(path, device, {**options, "plan": plan})


def open_layer(
    layer: LayerShape, open_file: Callable[[Path], _runtime.Network], seed: int = 0
) -> tuple[_runtime.Network, int]:
    """A network that holds one layer with random weights, and the layer's index."""
    contents, index = layer_file(layer, seed)
    with tempfile.TemporaryDirectory(prefix="phonebit-layer-") as folder:
        file = Path(folder) / "layer.pbit"
        file.write_bytes(file_bytes(contents))
        return open_file(file), index


def open_probe(device: str, options: EngineOptions) -> tuple[_runtime.Network, int]:
    """What ``NoiseProbe`` takes."""
    return open_layer(PROBE, lambda file: open_measuring_engine(file, device, options))


class NetworkOnDevice:
    """A file on both processors of this machine, as "gpu:1+cpu", in a precision."""

    def __init__(
        self, path: Path, device: str, threads: int, precision: Precision = "exact"
    ) -> None:
        self._path, self._device = path, device
        self._options = EngineOptions(threads=threads, precision=precision)
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
        """What a synchronization costs, by the probe's layer; passes correct it."""
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
        """Times of typical whole inferences as planned, which take turns."""
        self._planned = {  # networks that are not asked for any more are closed
            plan.parts: self._planned.get(plan.parts)
            or open_measuring_engine(self._path, self._device, self._options, plan)
            for plan in plans
        }
        measures = [partial(measure_pass, network) for network in self._planned.values()]
        found = self.probe.measure_passes(measures, PASSES, PASSES_S)
        times = dict(zip(self._planned, found, strict=True))
        return [times[plan.parts] for plan in plans]
