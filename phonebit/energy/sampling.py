"""A thread that reads a source at its pace, so that a driver which hangs never hangs the caller."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from phonebit.compiled import load_runtime
from phonebit.energy.source import EnergyError, EnergySource

if TYPE_CHECKING:
    from phonebit import _runtime

ANSWER_S = 5.0
"""A source that does not answer for so long has failed."""


def empty_trace(source: EnergySource) -> _runtime.EnergyTrace:
    """A trace for the readings of a source.

    Raises:
        DeviceError: if the compiled module cannot be loaded.
    """
    counted = [rail.counted for rail in source.rails]
    is_counter = source.kind == "counter"
    trace: _runtime.EnergyTrace = load_runtime().EnergyTrace(counted, is_counter, source.unit_mj)
    return trace


class Sampler:
    """Reads a source from entering a ``with`` block to leaving it.

    Args:
        source: what to read.
        answer_s: how long to wait for a reading.
    """

    def __init__(self, source: EnergySource, answer_s: float = ANSWER_S) -> None:
        self.trace = empty_trace(source)
        self._source = source
        self._answer_s = answer_s
        self._wake = threading.Event()
        self._done = False
        self._error: EnergyError | None = None
        self._read_at = float("-inf")
        self._news = threading.Condition()
        # A daemon: a call that never returns must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="phonebit-energy", daemon=True)

    def __enter__(self) -> Sampler:
        """Start, and wait for the first reading."""
        self._thread.start()
        self.read_now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop; a reading under way is waited for, but not for ever."""
        self._done = True
        self._wake.set()
        self._thread.join(self._answer_s)

    def restart(self) -> None:
        """Forget what was read, and begin again with a reading of now."""
        with self._news:
            self.trace = empty_trace(self._source)
        self.read_now()

    def read_now(self) -> None:
        """Add a reading of now to the trace.

        Raises:
            EnergyError: if the source fails or does not answer.
        """
        asked = time.perf_counter()
        self._wake.set()
        with self._news:
            answered = self._news.wait_for(
                lambda: self._error is not None or self._read_at >= asked, self._answer_s
            )
        if self._error is not None:
            raise self._error
        if not answered:
            raise EnergyError(
                "the source does not answer",
                where=self._source.name,
                expected=f"a reading within {self._answer_s:g} s",
                hint="choose another source, or restart its driver",
            )

    def _work(self) -> None:
        while not self._done:
            begin = time.perf_counter()
            try:
                reading = self._source.read()
            except EnergyError as error:
                self._tell(begin, error)
                return
            with self._news:
                self.trace.add(begin, reading)
            self._tell(begin)
            self._wake.wait(self._source.period_s)
            self._wake.clear()

    def _tell(self, begin: float, error: EnergyError | None = None) -> None:
        with self._news:
            self._read_at, self._error = begin, error
            self._news.notify_all()
