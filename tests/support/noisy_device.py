"""A device that is disturbed at times, and a clock that goes on where something is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phonebit.planner import Processor
from phonebit.planner.measure.measuring import LayerTimes


class Clock:
    """Time passes only where something is measured."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    perf_counter = monotonic


class Device:
    """The probe's layer takes 10 us, or more while a processor is disturbed.

    Args:
        clock: Goes on by a tenth of a second with every measurement.
        disturbed: From when until when, and who.
    """

    def __init__(self, clock: Clock, *disturbed: tuple[float, float, Processor]) -> None:
        self.clock = clock
        self.disturbed = disturbed
        self.quick: set[float] = set()
        """Moments when the layer takes 7 us."""
        self.clocks: dict[Processor, tuple[float, float, float]] = {}
        """From when until when everything takes how many times as long."""

    def us(self, processor: Processor) -> float:
        now = self.clock.seconds
        slow = any(begin <= now < end and processor == who for begin, end, who in self.disturbed)
        since, until, times_as_long = self.clocks.get(processor, (0.0, 0.0, 1.0))
        us = 17.0 if slow else 7.0 if now in self.quick else 10.0
        return us * times_as_long if since <= now < until else us

    def measure_layer(self, index: int, cpu: Any, gpu: Any, repeats: int) -> Mapping[str, float]:
        assert cpu is not None and gpu is not None
        times = {"cpu_us": self.us(Processor.CPU), "gpu_us": self.us(Processor.GPU)}
        self.clock.seconds += 0.1
        return {"total_us": max(times.values()), **times}

    def measure(self) -> LayerTimes:
        """What the probe is for: as much slower as the probe's layer is."""
        cpu_us, gpu_us = self.us(Processor.CPU), self.us(Processor.GPU)
        self.clock.seconds += 0.1
        return LayerTimes(max(cpu_us, gpu_us), cpu_us, gpu_us)
