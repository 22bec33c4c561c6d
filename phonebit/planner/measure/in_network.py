"""Plans that are timed inside the network, corrected, and made again.

A layer alone finds its weights in the caches and the other processor idle; in a network it does
not. So the layers of either processor alone, then those of each plan, are timed in whole
inferences. What a layer took there stands in place of what it took alone, and how many times as
long it took corrects its other parts on that processor. What an inference takes beyond its stages
is what its synchronization costs. A prediction is always older than the inference that it is
compared with, and a machine's speed changes by a tenth meanwhile: each plan is timed in turns with
the better single processor, and plans are compared at the speed that this one had at first. What
is reported are the times that inferences took, and of a machine that slowed down much there are
none: two processors starve otherwise than one, so that no division makes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

from phonebit.errors import DeviceError
from phonebit.planner.measure.measuring import PassTimes
from phonebit.planner.plan.execution_plan import ExecutionPlan, Processor
from phonebit.planner.predict.profile import MIN_MARGIN
from phonebit.planner.search.part_times import PartTimes
from phonebit.planner.search.planning import Planned
from phonebit.planner.search.stages import LayerParts, Stage

AGREEMENT: Final = 0.05
"""Prediction and inference agree if they differ by less than this share of the inference."""
ROUNDS: Final = 6
"""Passes of plans at most; the last one only repeats the best. Once more where that one loses."""
MAX_SLOWNESS: Final = 1.3
"""A machine that became slower than this while it was measured was disturbed."""
ATTEMPTS: Final = 3
"""To measure a plan on an undisturbed machine."""
MIN_SYNCHRONIZATION: Final = 0.01
"""Synchronization is never free: stages may overlap, so an inference takes less than their sum."""


class Correction:
    """What passes have told of times inside a network."""

    def __init__(self) -> None:
        self.inside: dict[LayerParts, tuple[float, float]] = {}
        """Times of the CPU and the GPU in the last inference that had these parts."""
        self.slowness: dict[tuple[int, Processor, bool], float] = {}
        """How many times as long as alone a layer took on a processor, without the other one and
        together with it, in the last inference that had some of it there."""
        self.contention = dict.fromkeys(Processor, 1.0)
        """Of those the typical ratio of together to without."""
        self.synchronization = 1.0
        """How many times as long as measured alone synchronization took."""

    def learn(self, stages: Iterable[Stage], alone: PartTimes, found: PassTimes) -> None:
        """Takes in the layers' times of an inference through these stages of all of them."""
        for parts in (parts for stage in stages for parts in stage.parts):
            inside = found.cpu_us[parts.layer], found.gpu_us[parts.layer]
            [alone_us] = alone.microseconds([parts])
            self.inside[parts] = inside
            for side in Processor:
                if inside[side] > 0 and 0 < alone_us[side] < math.inf:
                    key = parts.layer, side, len(parts.sides) == 2
                    self.slowness[key] = inside[side] / alone_us[side]
        for side in Processor:
            ratios = [
                together / without
                for (layer, of, is_together), together in self.slowness.items()
                if of == side
                and is_together
                and (without := self.slowness.get((layer, side, False)))
            ]
            self.contention[side] = median(ratios) if ratios else 1.0

    def slowness_of(self, parts: LayerParts, side: Processor) -> float:
        """How many times as long as alone parts take that no pass had."""
        without = self.slowness.get((parts.layer, side, False), 1.0)
        if len(parts.sides) < 2:
            return without
        return self.slowness.get((parts.layer, side, True), without * self.contention[side])

    def learn_synchronization(self, planned: Planned, found: PassTimes) -> None:
        """Takes in what the inference of a plan took beyond its stages."""
        expected_us = planned.total_us - sum(map(planned.costs.work_us, planned.stages))
        if expected_us <= 0:
            return
        times_as_long = exchange_us(planned.stages, found) / expected_us
        self.synchronization = max(self.synchronization * times_as_long, MIN_SYNCHRONIZATION)


def exchange_us(stages: Iterable[Stage], found: PassTimes) -> float:
    """What an inference took beyond the slower processor's work in each stage, by their own clocks.

    That is waiting, copying and transforming: what CoDL's figure 20 shows. Negative where stages
    overlap by more.
    """
    work_us = 0.0
    for stage in stages:
        layers = slice(stage.begin, stage.end)
        work_us += max(sum(found.cpu_us[layers]), sum(found.gpu_us[layers]))
    return found.total_us - work_us


@dataclass(frozen=True)
class CorrectedTimes:
    """Times of parts as passes have corrected them."""

    alone: PartTimes
    correction: Correction

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """What ``PartTimes`` asks for."""
        times = {of: us for of in parts if (us := self.correction.inside.get(of))}
        unknown = [entry for entry in parts if entry not in times]
        alone = self.alone.microseconds(unknown) if unknown else []
        for entry, us in zip(unknown, alone, strict=True):
            cpu, gpu = (us[side] * self.correction.slowness_of(entry, side) for side in Processor)
            times[entry] = cpu, gpu
        return [times[entry] for entry in parts]


@dataclass(frozen=True)
class PassCheck:
    """A prediction and the inference that it was for; microseconds of an image, as measured.

    Args:
        predicted_us: At the speed that the machine had at first.
        home_us: What it took in the same turns on the better single processor, ``home``.
        rounds: Plans that were tried.
        slowness: How many times as long as at first ``home`` took in these turns.
    """

    predicted_us: float
    pass_us: float
    home_us: float
    home: Processor
    rounds: int
    slowness: float

    @property
    def error(self) -> float:
        """By how much of the inference the prediction, at its speed, is too long; or negative."""
        return self.predicted_us * self.slowness / self.pass_us - 1

    @property
    def agrees(self) -> bool:
        """Whether the prediction held."""
        return abs(self.error) <= AGREEMENT

    @property
    def gain(self) -> float:
        """How many times as fast as home."""
        return self.home_us / self.pass_us

    @property
    def pays(self) -> bool:
        """Whether the plan gains enough to be worth a second processor."""
        return self.pass_us <= (1 - MIN_MARGIN) * self.home_us

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; times in microseconds, the error as a share of the inference."""
        return {**asdict(self), "home": self.home.name.lower(), "error": self.error}


Passes = Callable[[Sequence[ExecutionPlan]], list[PassTimes]]
"""Times passes of plans, in turns."""


def plan_in_network(
    make: Callable[[Correction], Planned], alone: PartTimes, passes: Passes
) -> tuple[Planned, PassCheck]:
    """Plans, times the plan in passes, and plans again with what they told, until no plan is new.

    Args:
        make: Plans with what is known of the network.
        alone: Times of parts by themselves, which ``make`` corrects.
        passes: Times plans on the device.

    Returns:
        The plan that gained most, predicted and timed once more if its prediction did not hold, and
        a third time if it then lost. If it gains less than ``MIN_MARGIN``, all on one processor.

    Raises:
        DeviceError: The machine became slower than ``MAX_SLOWNESS`` and stayed so.
    """
    correction = Correction()
    first = make(correction)
    singles = [of for of in map(first.at_home, Processor) if math.isfinite(of.total_us)]
    timed = list(zip(singles, passes([of.plan for of in singles]), strict=True))
    for single, times in timed:
        correction.learn(single.stages, alone, times)
    at_home, home_times = min(timed, key=lambda of_side: of_side[1].total_us)
    home = at_home.home

    tried: list[tuple[Planned, PassCheck, Correction]] = []

    def check_in_passes(planned: Planned) -> tuple[Planned, PassCheck, Correction]:
        times = _undisturbed(passes, [at_home.plan, planned.plan], home_times.total_us)
        slowness = times[0].total_us / home_times.total_us
        of_home, of_plan = (each.over(slowness) for each in times)
        correction.learn(at_home.stages, alone, of_home)
        correction.learn(planned.stages, alone, of_plan)
        correction.learn_synchronization(planned, of_plan)
        times_us = planned.total_us, times[1].total_us, times[0].total_us
        check = PassCheck(*times_us, home, len(tried) + 1, slowness)
        tried.append((planned, check, deepcopy(correction)))
        return tried[-1]

    while len(tried) < ROUNDS - 1:
        planned = make(correction)
        if any(check.agrees and of.plan.parts == planned.plan.parts for of, check, _ in tried):
            break
        check_in_passes(planned)
    planned, check, known = max(tried, key=lambda one: one[1].gain)
    paid = check.pays
    if not check.agrees:
        # By what its own pass told: later ones may have been disturbed.
        planned, check, _ = check_in_passes(replace(make(known), stages=planned.stages))
        if paid and not check.pays:  # one of both was disturbed, and a third tells which
            planned, check, _ = check_in_passes(planned)
    check = replace(check, rounds=len(tried))
    is_at_home = planned.home == home and not planned.is_split
    if is_at_home or check.pays:
        return planned, check
    planned = planned.at_home(home)
    return planned, replace(check, predicted_us=planned.total_us, pass_us=check.home_us)


def _undisturbed(
    passes: Passes, plans: Sequence[ExecutionPlan], usual_us: float
) -> list[PassTimes]:
    """Passes in which the first plan takes about what it usually does."""
    for _ in range(ATTEMPTS):
        times = passes(plans)
        slowness = times[0].total_us / usual_us
        if slowness <= MAX_SLOWNESS:
            return times
    raise DeviceError(
        "the machine became slower while plans were measured, by other work or by heat",
        where="plan",
        expected=f"at most {MAX_SLOWNESS} times as slow as at first",
        got=f"{slowness:.2f} times ({times[0].total_us / 1e3:.3f} ms, {usual_us / 1e3:.3f} ms)",
        hint="plan again when it is idle, or with --cost-model and --predict",
    )
