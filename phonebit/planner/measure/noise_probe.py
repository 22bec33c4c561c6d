"""Whether the device is undisturbed: a layer whose time is known tells between measurements.

Cores of a machine that is shared, or a phone that is warm, are slower for milliseconds or seconds
and then as fast as before: 1.2 to 2.4 times on such machines, for a tenth to a half of the time on
each core. Clocks also rise and fall by some per cent, for seconds and minutes; by as much the
layers are slower that are measured then, and the probe tells how much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from phonebit.planner.measure.device_facts import PROBE
from phonebit.planner.measure.measuring import LayerTimes, measure_parts
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.samples import usual_us

if TYPE_CHECKING:
    from phonebit import _runtime

TOLERANCE: Final = 1.1
"""A probe that takes longer than this times what it usually takes is disturbed. Where a machine is
shared, a core takes 1.19 times as long while its other hardware thread works."""
REPEATS: Final = 3
"""Its time is their least. Of single runs on several cores many are late without a reason."""
PATIENCE_S: Final = 10
"""Seconds that a measurement waits at most until it is not."""
WAITS_PER_MEASUREMENT: Final = 2
"""All together wait at most so many times as long as they take: a phone may stay warm."""
GPU_PART: Final = OutputPart(0, PROBE.out_h // 2, 0, PROBE.out_c)
CPU_PART: Final = OutputPart(PROBE.out_h // 2, PROBE.out_h, 0, PROBE.out_c)

Times = Mapping[Processor, float]
"""Microseconds of the probe's layer."""


class NoiseProbe:
    """A layer that both processors compute a half of, again and again.

    Args:
        engine: A network that holds ``PROBE``.
        index: The layer's.
    """

    def __init__(self, engine: _runtime.Network, index: int) -> None:
        self._engine = engine
        self._index = index
        self._known_us: dict[Processor, list[float]] = {processor: [] for processor in Processor}
        self.patience_s = float(PATIENCE_S)

    def measure_in_turns(
        self,
        processors: Collection[Processor],
        measures: Sequence[Callable[[], LayerTimes]],
        turns: int,
    ) -> tuple[list[LayerTimes], Times]:
        """The least times of parts of layers, and those of the probe.

        Everything has its turn before anything has its next one, the probe first: what disturbs
        for milliseconds spoils a turn of some. There are more turns while the probe has not once
        been undisturbed, until patience is over.

        Args:
            processors: Who takes part.
            measures: Called once in each turn.
            turns: How many; where a core is slow for half of the time, few are without a quick one.
        """
        begin = time.monotonic()
        least = self._turn(measures)
        for _ in range(turns - 1):
            least = _least(least, self._turn(measures))
        self.learn(by_processor(least[0]))
        self.restore(time.monotonic() - begin)
        while self.patience_s > 0 and not self.is_quiet(processors, by_processor(least[0])):
            begin = time.monotonic()
            least = _least(least, self._turn(measures))
            self.patience_s -= time.monotonic() - begin
        probe, *times = least
        return times, by_processor(probe)

    def measure_times(
        self, processors: Collection[Processor], measure: Callable[[], LayerTimes], turns: int
    ) -> LayerTimes:
        """Of parts of a layer, as if the processors had been as fast as they usually are so far.

        Args:
            processors: Who takes part.
            measure: As ``measure_in_turns`` calls it.
            turns: Likewise.
        """
        [times], probe = self.measure_in_turns(processors, [measure], turns)
        slowness = {
            processor: us / usual_us(self._known_us[processor]) for processor, us in probe.items()
        }
        return times.at_usual_speed(slowness[Processor.CPU], slowness[Processor.GPU])

    def _turn(self, measures: Sequence[Callable[[], LayerTimes]]) -> list[LayerTimes]:
        """The probe's times, then the others'."""
        return [self.layer(), *(measure() for measure in measures)]

    def restore(self, seconds: float) -> None:
        """Patience, for so long a measurement."""
        self.patience_s = min(self.patience_s + WAITS_PER_MEASUREMENT * seconds, PATIENCE_S)

    def layer(self) -> LayerTimes:
        """What the layer takes now."""
        return measure_parts(self._engine, self._index, CPU_PART, GPU_PART, REPEATS)

    def learn(self, probe: Times) -> None:
        """Keeps a time from before waiting: of those while it waits there are many alike."""
        for processor, us in probe.items():
            self._known_us[processor].append(us)

    def is_quiet(self, processors: Collection[Processor], probe: Times) -> bool:
        """Whether the layer took as long as usual."""
        return all(probe[side] <= TOLERANCE * usual_us(self._known_us[side]) for side in processors)


def by_processor(times: LayerTimes) -> Times:
    """Without the time of both together."""
    return {Processor.CPU: times.cpu_us, Processor.GPU: times.gpu_us}


def _least(turn: Sequence[LayerTimes], other: Sequence[LayerTimes]) -> list[LayerTimes]:
    return [one.least(another) for one, another in zip(turn, other, strict=True)]
