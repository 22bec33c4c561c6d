"""Runs work for as long as a source needs to see it, with a window of idleness before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from phonebit.energy.result import EnergyResult
from phonebit.energy.sampling import Sampler
from phonebit.energy.source import EnergyError, EnergySource
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
CHECKS_S = 0.25
"""How often a window that has its length is looked at."""
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
        with Sampler(self.source) as sampler:
            rest: _runtime.EnergySpan | None = None
            if idle:
                time.sleep(SETTLE_S)
                rest, _ = self._window(sampler, lambda: time.sleep(NAP_S), IDLE_FINE_ENOUGH)
            begin = time.perf_counter()
            work()
            while time.perf_counter() - begin < WARM_UP_S:
                work()
            busy, calls = self._window(sampler, work, FINE_ENOUGH)
        return EnergyResult.of(self.source, self._chosen, calls * frames_each, busy, rest)

    def _window(
        self, sampler: Sampler, work: Callable[[], object], fine_enough: float
    ) -> tuple[_runtime.EnergySpan, int]:
        """Energy of a window, and how often the work was done in it."""
        sampler.restart()
        begin = time.perf_counter()
        calls = 0
        until = begin + self._seconds
        while True:
            while time.perf_counter() < until or calls == 0:
                work()
                calls += 1
            sampler.read_now()
            span = sampler.trace.span()
            if span.has_stopped:
                raise EnergyError(
                    "the source has stopped: it shows nothing new",
                    where=self.source.name,
                    hint="choose another source, or measure again",
                )
            if span.uncertainty <= fine_enough or span.window_s >= self._longest_s:
                return self._checked(span), calls
            until = min(time.perf_counter() + CHECKS_S, begin + self._longest_s)

    def _checked(self, span: _runtime.EnergySpan) -> _runtime.EnergySpan:
        if span.changes and span.energy_mj > 0:
            return span
        raise EnergyError(
            "the source shows nothing new",
            where=self.source.name,
            expected=f"readings that change within {self._longest_s:g} s",
            got=f"{span.changes} changes, {span.energy_mj:g} mJ",
            hint="choose another source, or measure longer",
        )
