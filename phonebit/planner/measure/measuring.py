"""Parts of layers measured on the device: the only place that asks the engine for times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from phonebit.planner.plan.execution_plan import OutputPart

if TYPE_CHECKING:
    from phonebit import _runtime


class LayerTimes(NamedTuple):
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
        return LayerTimes(*map(min, self, other))

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
    engine: _runtime.Network,
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
    times = engine.measure_layer(index, cpu, gpu, repeats)
    return LayerTimes(*(float(times[name]) for name in LayerTimes._fields))
