"""Parts of layers measured on the device: the only place that asks the engine for times."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from phonebit.compiled import load_runtime
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import USUAL

if TYPE_CHECKING:
    from phonebit import _runtime


class LayerTimes(NamedTuple):
    """Parts of one layer, measured at the same time; 0 for a processor without one.

    The total is from one such layer to the next, waiting and data transfer included.
    """

    total_us: float
    cpu_us: float
    gpu_us: float

    def of(self, processor: Processor) -> float:
        """A processor's part alone."""
        return self.cpu_us if processor == Processor.CPU else self.gpu_us

    def over(self, cpu: float, gpu: float) -> LayerTimes:
        """The times of processors so many times as slow, as if they were not.

        The total is as slow as who took longer.
        """
        slowness = cpu if self.cpu_us > self.gpu_us else gpu
        return LayerTimes(self.total_us / slowness, self.cpu_us / cpu, self.gpu_us / gpu)

    @property
    def sharing_us(self) -> float:
        """What waiting for each other and data transfers take."""
        return max(self.total_us - max(self.cpu_us, self.gpu_us), 0.0)


class PassTimes(NamedTuple):
    """A whole pass over one image, and its layers' parts inside it, by the processors' own clocks.

    The total is from the call to its results; a processor without a part of a layer has 0 for it.
    """

    total_us: float
    cpu_us: tuple[float, ...]
    gpu_us: tuple[float, ...]

    @classmethod
    def typical(cls, passes: Sequence[PassTimes]) -> PassTimes:
        """The mean of the middle half of some passes: about their median.

        Unlike medians, means of layers add up to the inference's.
        """
        rest = len(passes) // 4
        middle = sorted(passes, key=lambda one: one.total_us)[rest : len(passes) - rest]
        total_us, *of_layers = zip(*middle, strict=True)
        sides = (tuple(map(fmean, zip(*times, strict=True))) for times in of_layers)
        return cls(fmean(total_us), *sides)

    def over(self, slowness: float) -> PassTimes:
        """The times of a device that is so many times as slow, as if it were not."""
        cpu_us, gpu_us = (tuple(us / slowness for us in of) for of in (self.cpu_us, self.gpu_us))
        return PassTimes(self.total_us / slowness, cpu_us, gpu_us)


Found = TypeVar("Found")


def min_of(times: Iterable[LayerTimes]) -> LayerTimes:
    """Of each time the smallest one."""
    return LayerTimes(*map(min, zip(*times, strict=True)))


def measure_parts(
    engine: _runtime.Network,
    index: int,
    cpu: OutputPart | None,
    gpu: OutputPart | None,
    repeats: int,
) -> LayerTimes:
    """Times of parts of a layer, of some runs the minimum.

    Whatever else a device does makes it slower, often for some milliseconds: the minimum of its
    runs is nearer to itself when measured again than their median is. A slow layer has fewer runs.
    """
    times = engine.measure_layer(index, cpu, gpu, repeats)
    return LayerTimes(*(float(times[name]) for name in LayerTimes._fields))


def measure_pass(engine: _runtime.Network) -> PassTimes:
    """An inference as the network's plan says, like those of a network that is used repeatedly.

    One that does not count comes before it: it finds in the caches what ran before, and processors
    that slept meanwhile.
    """
    engine.measure_pass(1)
    times = engine.measure_pass(1)
    return PassTimes(times["total_us"], tuple(times["cpu_us"]), tuple(times["gpu_us"]))


PROBE: Final = LayerShape(
    op="binary_conv2d", in_h=14, in_w=14, in_c=256, out_h=14, out_w=14, out_c=64, input="bit",
    operand_channels=(256,), kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, bits=True,
    thresholds=True, weight_bits=1,
)  # fmt: skip
"""A layer whose CPU kernel tells whether filters can share sums."""
TOLERANCE: Final = 1.1
"""A probe that takes longer than this times what it usually takes is disturbed. Where a machine is
shared, a core takes 1.19 times as long while its other hardware thread works."""
REPEATS: Final = 3
"""Its time is their minimum. Of single runs on several cores many are late without a reason."""
MAX_TURNS: Final = 32
QUIET_LIMIT_S: Final = 10
"""Seconds that a measurement waits at most until it is not."""
WAITS_PER_MEASUREMENT: Final = 2
"""All together wait at most so many times as long as they take: a phone may stay warm."""
GPU_PART, CPU_PART = PROBE.whole.cut(row=PROBE.out_h // 2)


class NoiseProbe:
    """Whether the device is undisturbed: both compute a half of ``PROBE`` again and again.

    Cores of a machine that is shared, or a phone that is warm, are slower for milliseconds or
    seconds and then at full speed again: 1.2 to 2.4 times on such machines, for a tenth to a half
    of the time on each core. Clocks also rise and fall by some per cent, for seconds and minutes;
    by as much the layers are slower that are measured then, and the probe tells how much. When
    measurements are repeated, measure/noise_probe.h says.
    """

    def __init__(self, engine: _runtime.Network, index: int) -> None:
        self._engine = engine
        self._index = index
        self._rule = load_runtime().NoiseProbe(
            usual_share=USUAL,
            tolerance=TOLERANCE,
            max_wait_s=QUIET_LIMIT_S,
            waits_per_measurement=WAITS_PER_MEASUREMENT,
            max_turns=MAX_TURNS,
            clock=time.monotonic,
        )

    def turns(
        self,
        processors: Collection[Processor],
        measures: Sequence[Callable[[], Found]],
        minimum: int,
        seconds: float = 0.0,
    ) -> list[tuple[LayerTimes, list[Found]]]:
        """Some measurements in turns, each time with the probe's before them.

        Args:
            processors: Who must have been undisturbed.
            measures: What is to be measured.
            minimum: How many turns, at least.
            seconds: How long they go on, up to ``MAX_TURNS``.
        """
        found: list[tuple[LayerTimes, list[Found]]] = []

        def take_turn() -> tuple[float, float]:
            probe = self.layer()
            found.append((probe, [measure() for measure in measures]))
            return probe.cpu_us, probe.gpu_us

        self._rule.measure_in_turns(_sides(processors), take_turn, minimum, seconds)
        return found

    def measure_in_turns(
        self,
        processors: Collection[Processor],
        measures: Sequence[Callable[[], LayerTimes]],
        turns: int,
    ) -> tuple[list[LayerTimes], LayerTimes]:
        """The minimum of some times, and that of the probe."""
        probes, times = zip(*self.turns(processors, measures, turns), strict=True)
        return [min_of(of_one) for of_one in zip(*times, strict=True)], min_of(probes)

    def measure_times(
        self,
        processors: Collection[Processor],
        measures: Sequence[Callable[[], LayerTimes]],
        turns: int,
    ) -> list[LayerTimes]:
        """The minimum times, as if the processors had been as fast as they usually are."""
        times, probe = self.measure_in_turns(processors, measures, turns)
        usual_cpu_us, usual_gpu_us = self._rule.usual_us
        slowness = probe.cpu_us / usual_cpu_us, probe.gpu_us / usual_gpu_us
        return [of.over(*slowness) for of in times]

    def measure_passes(
        self, measures: Sequence[Callable[[], PassTimes]], turns: int, seconds: float
    ) -> list[PassTimes]:
        """Typical inferences of an undisturbed device: a user waits for these, not the fastest.

        The half of the turns counts that has the quicker probes. On many cores the probe tells
        little of the inferences in its turn, and the half is any half.
        """
        found = self.turns(list(Processor), measures, turns, seconds)
        quicker = nsmallest((len(found) + 1) // 2, found, key=lambda turn: turn[0].total_us)
        times = (passes for _, passes in quicker)
        return [PassTimes.typical(of_one) for of_one in zip(*times, strict=True)]

    def measure_quietly(
        self, processors: Collection[Processor], measure: Callable[[], Found]
    ) -> Found:
        """A measurement before and after which the processors that take part are undisturbed.

        A device that stays slow is measured as it is.
        """
        found: list[Found] = []

        def probe_us() -> tuple[float, float]:
            times = self.layer()
            return times.cpu_us, times.gpu_us

        self._rule.measure_quietly(_sides(processors), probe_us, lambda: found.append(measure()))
        return found[-1]

    def layer(self) -> LayerTimes:
        """What the layer takes now."""
        return measure_parts(self._engine, self._index, CPU_PART, GPU_PART, REPEATS)


def _sides(processors: Collection[Processor]) -> list[bool]:
    return [side in processors for side in Processor]
