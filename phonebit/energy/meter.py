"""Runs work for as long as a source needs to see it, with a window of idleness before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from phonebit.compiled import load_runtime
from phonebit.energy.result import EnergyResult
from phonebit.energy.source import EnergySource
from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit import _runtime

FINE_ENOUGH = 0.01
IDLE_FINE_ENOUGH = 0.03
"""A window is long enough when one step of the source is at most this share of its energy. Idle
power is what is subtracted, mostly the smaller number: it may be known less finely."""
WARM_UP_S = 0.5
"""Work before the window: clocks rise, caches fill."""
SETTLE_S = 2.0
"""Rest before the idle window: clocks fall."""
ANSWER_S = 5.0
"""A source that does not answer for so long has failed."""
NAP_S = 0.05


class EnergyMeter:
    """Measures one source.

    Args:
        source: what to read.
        seconds: minimum length of a window. It grows until one step of the source is at most 1 %
            of its energy.
        longest_s: maximum length; the result's uncertainty says what a step is of the energy then.
        chosen: why this source, for the result.

    Raises:
        InputError: if the lengths are not positive, or in the wrong order.
    """

    def __init__(
        self,
        source: EnergySource,
        seconds: float = 3.0,
        longest_s: float = 60.0,
        chosen: str = "as asked",
    ) -> None:
        if not 0 < seconds <= longest_s:
            raise InputError(
                "length of the measurement out of range",
                where="seconds",
                expected=f"more than 0, at most {longest_s:g}",
                got=seconds,
            )
        self.source = source
        self._seconds = seconds
        self._longest_s = longest_s
        self._chosen = chosen

    def measure(
        self, work: Callable[[], object], frames_each: int = 1, idle: bool = True
    ) -> EnergyResult:
        """Energy of a piece of work.

        Args:
            work: called again and again; must return when its work is done.
            frames_each: frames of one call.
            idle: measure a window without work before.

        Returns:
            The result.

        Raises:
            EnergyError: if the source fails, stops, or never shows anything new.
        """
        with open_meter(self.source) as meter:
            rest: _runtime.EnergySpan | None = None
            if idle:
                time.sleep(SETTLE_S)
                rest, _ = self._window(meter, lambda: time.sleep(NAP_S), IDLE_FINE_ENOUGH)
            begin = time.perf_counter()
            work()
            while time.perf_counter() - begin < WARM_UP_S:
                work()
            busy, calls = self._window(meter, work, FINE_ENOUGH)
        return EnergyResult.of(self.source, self._chosen, calls * frames_each, busy, rest)

    def _window(
        self, meter: _runtime.EnergyMeter, work: Callable[[], object], fine_enough: float
    ) -> tuple[_runtime.EnergySpan, int]:
        """Energy of a window, and how often the work was done in it."""
        return load_runtime().measure_energy_window(  # type: ignore[no-any-return]
            source=self.source.name,
            start=meter.start,
            peek=meter.peek,
            seconds=self._seconds,
            longest_s=self._longest_s,
            max_uncertainty=fine_enough,
            work=work,
            clock=time.perf_counter,
        )


def open_meter(source: EnergySource) -> _runtime.EnergyMeter:
    """What reads a source at its pace in a thread, so that a driver which hangs never hangs us."""
    meter: _runtime.EnergyMeter = load_runtime().EnergyMeter(source, ANSWER_S)
    return meter
