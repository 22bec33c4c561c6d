"""Parts of layers measured on the device: the only place that asks the engine for times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phonebit.planner.plan.execution_plan import OutputPart

Sides = tuple[int, int, int, int]
"""A part as the runtime takes it: first row, row behind the last, the same of channels."""


class MeasuringEngine(Protocol):
    """What the compiled runtime offers for a network on "gpu+cpu"."""

    def measure_layer(
        self, index: int, cpu_part: Sides | None, gpu_part: Sides | None, repeats: int = 10
    ) -> Mapping[str, float]:
        """``total_us``, ``cpu_us`` and ``gpu_us``; a processor without a part has 0."""

    def dispatch(self, index: int, gpu_part: Sides) -> Sequence[Mapping[str, Any]]:
        """``kernel``, ``choice``, ``global`` and ``local`` of each launch of a part."""


@dataclass(frozen=True)
class LayerTimes:
    """Parts of one layer, measured at the same time.

    Args:
        total_us: From one such layer to the next, waiting and handing over included.
        cpu_us: The CPU's part alone; 0 without one.
        gpu_us: The GPU's.
    """

    total_us: float
    cpu_us: float
    gpu_us: float

    def least(self, other: LayerTimes) -> LayerTimes:
        """Of each time the lesser one."""
        return LayerTimes(
            min(self.total_us, other.total_us),
            min(self.cpu_us, other.cpu_us),
            min(self.gpu_us, other.gpu_us),
        )

    def at_usual_speed(self, cpu_slowness: float, gpu_slowness: float) -> LayerTimes:
        """The times of processors that were not slower than they usually are.

        Args:
            cpu_slowness: How many times as long as usual the CPU took for all it did.
            gpu_slowness: The GPU.
        """
        slowness = cpu_slowness if self.cpu_us > self.gpu_us else gpu_slowness
        return LayerTimes(
            self.total_us / slowness, self.cpu_us / cpu_slowness, self.gpu_us / gpu_slowness
        )

    @property
    def sharing_us(self) -> float:
        """What waiting for each other and handing over take."""
        return max(self.total_us - max(self.cpu_us, self.gpu_us), 0.0)


def measure_parts(
    engine: MeasuringEngine,
    index: int,
    cpu: OutputPart | None,
    gpu: OutputPart | None,
    repeats: int,
) -> LayerTimes:
    """Times of parts of a layer, of some runs the least.

    Whatever else a device does makes it slower, often for some milliseconds: the least of its runs
    is nearer to itself when measured again than their median is.

    Args:
        engine: A network on both processors.
        index: The layer's.
        cpu: The CPU's part; None: it does nothing.
        gpu: The GPU's.
        repeats: Runs at most; a slow layer has fewer.

    Raises:
        InputError: The layer has no such parts.
        DeviceError: The device fails.
    """
    times = engine.measure_layer(index, _sides(cpu), _sides(gpu), repeats)
    return LayerTimes(*(float(times[name]) for name in ("total_us", "cpu_us", "gpu_us")))


def dispatch_of(engine: MeasuringEngine, index: int, gpu: OutputPart) -> list[dict[str, Any]]:
    """The launches of a part, JSON-ready."""
    sides = (gpu.row_begin, gpu.row_end, gpu.channel_begin, gpu.channel_end)
    return [launch_record(launch) for launch in engine.dispatch(index, sides)]


def launch_record(launch: Mapping[str, Any]) -> dict[str, Any]:
    """A launch, JSON-ready."""
    return {
        "kernel": str(launch["kernel"]),
        "choice": str(launch["choice"]),
        "global": [int(side) for side in launch["global"]],
        "local": [int(side) for side in launch["local"]],
    }


def _sides(part: OutputPart | None) -> Sides | None:
    if part is None:
        return None
    return part.row_begin, part.row_end, part.channel_begin, part.channel_end
