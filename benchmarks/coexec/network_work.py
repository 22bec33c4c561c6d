"""What a plan's layers take one by one, and what its processors hand to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phonebit.planner.measure.measuring import LayerTimes, measure_parts
from phonebit.planner.search.planning import Planned
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import LayerParts

if TYPE_CHECKING:
    from phonebit import _runtime


class StageWork:
    """Measures the parts of plans layer by layer; equal parts are measured once.

    Args:
        engine: has the network on both processors.
        repeats: runs of a measurement, of which the least counts.
    """

    def __init__(self, engine: _runtime.Network, repeats: int) -> None:
        self._engine = engine
        self._repeats = repeats
        self._known: dict[LayerParts, LayerTimes] = {}

    def of(self, planned: Planned) -> dict[str, float]:
        """A plan's layers.

        Returns:
            ``individual_ms``: the sum over all layers, each measured as if its result had to be
            handed over; ``work_ms``: the sum over stages of the slower processor's computation,
            which is all that would be left if handing over and waiting cost nothing.
        """
        individual = work = 0.0
        for stage in planned.stages:
            times = [self._measure(parts) for parts in stage.parts]
            individual += sum(of.total_us for of in times)
            work += max(sum(of.cpu_us for of in times), sum(of.gpu_us for of in times))
        return {"individual_ms": individual / 1e3, "work_ms": work / 1e3}

    def _measure(self, parts: LayerParts) -> LayerTimes:
        if parts not in self._known:
            self._known[parts] = measure_parts(
                self._engine, parts.layer, parts.cpu, parts.gpu, self._repeats
            )
        return self._known[parts]


def handed_over(planned: Planned) -> dict[str, int]:
    """How often the processors of a plan meet on one image, and the bytes handed over."""
    counter = _CountedMeetings()
    StageCosts(planned.costs.graph, _NoTimes(), counter).total_us(planned.stages)
    return {"meetings": counter.meetings, "bytes": counter.bytes}


class _NoTimes:
    """Layers that take no time."""

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Zeros."""
        return [(0.0, 0.0)] * len(parts)


@dataclass
class _CountedMeetings:
    """Meetings that cost nothing, counted."""

    meetings: int = 0
    bytes: int = 0

    def microseconds(self, bytes_to_cpu: int, bytes_to_gpu: int) -> float:
        """Counts one."""
        self.meetings += 1
        self.bytes += bytes_to_cpu + bytes_to_gpu
        return 0.0
