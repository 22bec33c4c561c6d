"""From readings to energy: what flowed between the first and the last, and how finely known.

A counter's readings E(t) give E(last) - E(first). Power readings P(t) are integrated by
trapezoids, the sum of (P(i) + P(i+1)) / 2 * (t(i+1) - t(i)), exact for power that changes linearly
between readings. Neither is known better than one step of the source: at both ends up to a step
may belong to the other side, in opposite directions, so the difference is off by at most one.
A step is what is seen, not what a data sheet says: the largest energy between two readings that
differ. A source that has gone silent makes it grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.energy.source import EnergySource, Rail, SourceKind

Array = NDArray[np.float64]

STALE_S = 5.0
STALE_GAPS = 10.0
"""A source has stopped when nothing changed for so many seconds, and for so many times the longest
pause between two changes before."""


@dataclass(frozen=True)
class Span:
    """Energy between the first and the last reading of a trace.

    Attributes:
        window_s: time between them.
        rails_mj: energy of each rail.
        energy_mj: sum of those that count.
        step_mj: how finely that is known; see the module.
        changes: readings that differed from the one before.
        stopped: whether the source gave nothing new for too long.
    """

    window_s: float
    rails_mj: tuple[float, ...]
    energy_mj: float
    step_mj: float
    changes: int
    stopped: bool

    @property
    def mean_mw(self) -> float:
        """Mean power."""
        return self.energy_mj / self.window_s

    @property
    def uncertainty(self) -> float:
        """One step as a share of the energy: 1 where nothing is known."""
        return min(1.0, self.step_mj / self.energy_mj) if self.energy_mj > 0 else 1.0

    @property
    def update_s(self) -> float:
        """Mean time between changes; the window, if there were none."""
        return self.window_s / max(1, self.changes)


class Trace:
    """Readings of one source in the order of time.

    Args:
        rails: of the source.
        kind: of the source.
        unit_mj: of the source.
    """

    def __init__(self, rails: Sequence[Rail], kind: SourceKind, unit_mj: float = 0.0) -> None:
        self._counted = np.array([rail.counted for rail in rails])
        self._kind = kind
        self._unit_mj = unit_mj
        self._times: list[float] = []
        self._readings: list[tuple[float, ...]] = []

    @classmethod
    def of(cls, source: EnergySource) -> Trace:
        """An empty trace for a source."""
        return cls(source.rails, source.kind, source.unit_mj)

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time_s: float, reading: Sequence[float]) -> None:
        """Append a reading: mJ or mW of every rail."""
        self._times.append(time_s)
        self._readings.append(tuple(reading))

    def span(self) -> Span:
        """Energy from the first reading to the last; there must be two at different times."""
        count = len(self._readings)  # the last that `add` appends, perhaps in another thread
        times = np.array(self._times[:count])
        readings = np.array(self._readings[:count], np.float64)
        flowed = self._flowed(times, readings)
        total = flowed[:, self._counted].sum(axis=1)
        changed = 1 + np.flatnonzero(np.diff(readings[:, self._counted], axis=0).any(axis=1))
        window_s = float(times[-1] - times[0])
        return Span(
            window_s,
            tuple(map(float, flowed[-1])),
            float(total[-1]),
            max(self._unit_mj, _largest_step(times, total, changed)),
            len(changed),
            _stopped(times, changed),
        )

    def _flowed(self, times: Array, readings: Array) -> Array:
        """Energy of every rail since the first reading, mJ."""
        if self._kind == "counter":
            since: Array = readings - readings[0]
            return since
        pieces = (readings[1:] + readings[:-1]) / 2 * np.diff(times)[:, None]
        return np.vstack([np.zeros(readings.shape[1]), np.cumsum(pieces, axis=0)])


def _largest_step(times: Array, total: Array, changed: NDArray[np.intp]) -> float:
    """Largest energy between two changes, what has not yet shown up behind the last included."""
    if len(changed) == 0:
        return float(total[-1])
    last = changed[-1]
    rate_mw = (total[last] - total[0]) / (times[last] - times[0])
    unseen_mj = rate_mw * (times[-1] - times[last])
    return float(max(np.diff(total[changed], prepend=total[0]).max(), unseen_mj))


def _stopped(times: Array, changed: NDArray[np.intp]) -> bool:
    if len(changed) == 0:
        return False  # perhaps just slow: the meter waits as long as it may
    longest_s = np.diff(times[changed], prepend=times[0]).max()
    return bool(times[-1] - times[changed[-1]] > max(STALE_S, STALE_GAPS * longest_s))
