"""Measurements of any kind while all of a testbed's cores are undisturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TypeVar

from phonebit.planner import Processor
from phonebit.planner.measure.measuring import NoiseProbe

Found = TypeVar("Found")


class QuietProbe(NoiseProbe):
    """Also waits for measurements that are not of layers."""

    def measure_quietly(
        self, processors: Collection[Processor], measure: Callable[[], Found]
    ) -> Found:
        """A measurement before and after which the processors are undisturbed.

        Args:
            processors: Who takes part.
            measure: Called again until they are, or patience is over: then its answer counts, since
                a device that stays slow is measured as it is.
        """
        begin = time.monotonic()
        probe = self.layer()
        self.learn(probe)
        while True:
            is_patient = self.patience_s > 0
            found = None
            if not is_patient or self.is_quiet(processors, probe):
                found = (measure(),)
            probe = self.layer()
            seconds = time.monotonic() - begin
            if found and (not is_patient or self.is_quiet(processors, probe)):
                self.restore(seconds)
                return found[0]
            self.patience_s -= seconds
            begin += seconds
