"""Whether the device is undisturbed: a layer whose time is known tells before and after.

Cores of a machine that is shared, or a phone that is warm, are slower for seconds and then as fast
as before: 1.7 to 2.4 times on one such machine, for a tenth of the time on each core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from phonebit.planner.device_facts import PROBE
from phonebit.planner.measuring import MeasuringEngine, measure_parts
from phonebit.planner.plan import OutputPart, Processor

TOLERANCE: Final = 1.2
"""A canary that takes longer than this times its least is disturbed."""
PATIENCE_S: Final = 10
"""Seconds that a measurement waits at most until it is not."""
WAITS_PER_MEASUREMENT: Final = 2
"""All together wait at most so many times as long as they take: a phone may stay warm."""
REPEATS: Final = 1
GPU_PART: Final = OutputPart(0, PROBE.out_h // 2, 0, PROBE.out_c)
CPU_PART: Final = OutputPart(PROBE.out_h // 2, PROBE.out_h, 0, PROBE.out_c)

Found = TypeVar("Found")


class Canary:
    """A layer that both processors compute a half of, again and again.

    Args:
        engine: A network that holds ``PROBE``.
        index: The layer's.
    """

    def __init__(self, engine: MeasuringEngine, index: int) -> None:
        self._engine = engine
        self._index = index
        self._least_us = dict.fromkeys(Processor, float("inf"))
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
        while True:
            begin = time.monotonic()
            is_patient = self._patience_s > 0
            if self.is_quiet(processors) or not is_patient:
                times = measure()
                if not is_patient or self.is_quiet(processors):
                    self._restore(time.monotonic() - begin)
                    return times
            self._patience_s -= time.monotonic() - begin

    def _restore(self, seconds: float) -> None:
        restored_s = self._patience_s + WAITS_PER_MEASUREMENT * seconds
        self._patience_s = min(restored_s, PATIENCE_S)

    def is_quiet(self, processors: Collection[Processor]) -> bool:
        """Whether the layer takes as long now as it did at best."""
        times = measure_parts(self._engine, self._index, CPU_PART, GPU_PART, REPEATS, rounds=1)
        quiet = True
        for processor, us in ((Processor.CPU, times.cpu_us), (Processor.GPU, times.gpu_us)):
            self._least_us[processor] = min(us, self._least_us[processor])
            if processor in processors and us > TOLERANCE * self._least_us[processor]:
                quiet = False
        return quiet
