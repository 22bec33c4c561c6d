"""Whether the device is undisturbed: a layer whose time is known tells before and after.

Cores of a machine that is shared, or a phone that is warm, are slower for seconds and then as fast
as before: 1.7 to 2.4 times on one such machine, for a tenth of the time on each core. Clocks also
rise and fall by some per cent, for seconds and minutes; by as much the layers are slower that are
measured then, and the canary tells how much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from math import sqrt
from typing import Final, TypeVar

from phonebit.planner.device_facts import PROBE
from phonebit.planner.measuring import LayerTimes, MeasuringEngine, measure_parts, usual_us
from phonebit.planner.plan import OutputPart, Processor

TOLERANCE: Final = 1.2
"""A canary that takes longer than this times what it usually takes is disturbed."""
REPEATS: Final = 8
"""Its time is their least. Of single runs on several cores many are late without a reason."""
PATIENCE_S: Final = 10
"""Seconds that a measurement waits at most until it is not."""
WAITS_PER_MEASUREMENT: Final = 2
"""All together wait at most so many times as long as they take: a phone may stay warm."""
GPU_PART: Final = OutputPart(0, PROBE.out_h // 2, 0, PROBE.out_c)
CPU_PART: Final = OutputPart(PROBE.out_h // 2, PROBE.out_h, 0, PROBE.out_c)

Found = TypeVar("Found")
Times = Mapping[Processor, float]
"""Microseconds of the canary's layer."""


class Canary:
    """A layer that both processors compute a half of, again and again.

    Args:
        engine: A network that holds ``PROBE``.
        index: The layer's.
    """

    def __init__(self, engine: MeasuringEngine, index: int) -> None:
        self._engine = engine
        self._index = index
        self._known_us: dict[Processor, list[float]] = {processor: [] for processor in Processor}
        self._patience_s = float(PATIENCE_S)

    def measure_quietly(
        self, processors: Collection[Processor], measure: Callable[[], Found]
    ) -> Found:
        """A measurement before and after which the processors are undisturbed.

        Args:
            processors: Who takes part.
            measure: Called again until they are, or patience is over: then its answer counts, since
                a device that stays slow is measured as it is.
        """
        return self.measure_beside(processors, measure)[0]

    def measure_beside(
        self, processors: Collection[Processor], measure: Callable[[], Found]
    ) -> tuple[Found, Times]:
        """The same, and what the canary took around it: the mean of before and after.

        Args:
            processors: Who takes part.
            measure: As ``measure_quietly`` calls it.
        """
        begin = time.monotonic()
        canary = self._layer_us()
        self._learn(canary)
        while True:
            is_patient = self._patience_s > 0
            found = None
            if not is_patient or self._is_quiet(processors, canary):
                found = (measure(),)
            before, canary = canary, self._layer_us()
            seconds = time.monotonic() - begin
            if found and (not is_patient or self._is_quiet(processors, canary)):
                self._restore(seconds)
                return found[0], {
                    processor: sqrt(before[processor] * canary[processor]) for processor in canary
                }
            self._patience_s -= seconds
            begin += seconds

    def measure_times(
        self, processors: Collection[Processor], measure: Callable[[], LayerTimes]
    ) -> LayerTimes:
        """Of parts of a layer, as if the processors had been as fast as they usually are so far.

        Args:
            processors: Who takes part.
            measure: As ``measure_quietly`` calls it.
        """
        times, beside = self.measure_beside(processors, measure)
        slowness = {processor: us / self._usual_us(processor) for processor, us in beside.items()}
        return times.at_usual_speed(slowness[Processor.CPU], slowness[Processor.GPU])

    def _restore(self, seconds: float) -> None:
        restored_s = self._patience_s + WAITS_PER_MEASUREMENT * seconds
        self._patience_s = min(restored_s, PATIENCE_S)

    def _layer_us(self) -> dict[Processor, float]:
        """Microseconds that the layer takes now."""
        times = measure_parts(self._engine, self._index, CPU_PART, GPU_PART, REPEATS)
        return {Processor.CPU: times.cpu_us, Processor.GPU: times.gpu_us}

    def _learn(self, canary: Times) -> None:
        """Keeps a time from before a measurement; of those while it waits there are many alike."""
        for processor, us in canary.items():
            self._known_us[processor].append(us)

    def _usual_us(self, processor: Processor) -> float:
        return usual_us(self._known_us[processor])

    def _is_quiet(self, processors: Collection[Processor], canary: Times) -> bool:
        """Whether the layer took as long as usual."""
        return all(
            canary[processor] <= TOLERANCE * self._usual_us(processor) for processor in processors
        )
