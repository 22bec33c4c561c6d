"""Plans are corrected by what passes of them take, until their predictions hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from phonebit.errors import DeviceError
from phonebit.format.contents import FileContents
from phonebit.planner import ExecutionPlan, OutputPart, Processor, verify_plan
from phonebit.planner.measure.in_network import (
    AGREEMENT,
    ATTEMPTS,
    ROUNDS,
    CorrectedTimes,
    Correction,
    PassCheck,
    plan_in_network,
)
from phonebit.planner.measure.measuring import PassTimes
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.planning import Planned, plan_network
from phonebit.planner.search.stages import LayerParts, Placement
from support.planner_times import AnalyticTimes, Speed, forked, residual, straight

SPEEDS = (Speed(3, 0.01, 32), Speed(5, 0.01, 8))
SHARING = SharingCost(2.0)


@dataclass
class World:
    """A device on which layers take longer inside a network than alone.

    Args:
        contents: The network.
        slowness: How many times as long a layer takes on a processor inside it.
        contention: How many times as long the parts take where both processors work on a layer.
        sync_us: Of a stage that both work in.
        drift: How many times longer each further turn of inferences takes.
        unrest: How many times as long every other turn of a plan takes that uses the GPU.
        disturbed_turn: The one in which such a plan takes three times as long.
    """

    contents: FileContents
    slowness: Callable[[int, Processor], float] = lambda layer, side: 1.0
    contention: float = 1.0
    sync_us: float = 2.0
    drift: float = 1.0
    unrest: float = 1.0
    disturbed_turn: int = 0
    turns: list[list[ExecutionPlan]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = NetworkGraph.of(self.contents)
        self.alone = AnalyticTimes(self.graph, *SPEEDS)

    def passes(self, plans: Sequence[ExecutionPlan]) -> list[PassTimes]:
        self.turns.append(list(plans))
        return [self.run(plan) for plan in plans]

    def run(self, plan: ExecutionPlan) -> PassTimes:
        verify_plan(self.contents, plan)
        times: dict[Processor, list[float]] = {
            side: [0.0] * len(self.graph.layers) for side in Processor
        }
        total = 2 * self.sync_us if self.uses(plan, Processor.GPU) else 0.0
        for _, parts in plan.stages():
            both = {part.processor for part in parts} == set(Processor)
            for part in parts:
                times[part.processor][part.layer] = self.inside(part.layer, part, both)
            work = [
                sum(times[side][part.layer] for part in parts if part.processor == side)
                for side in Processor
            ]
            total += max(work) + (self.sync_us if both else 0.0)
        slow = self.drift ** len(self.turns)
        if self.uses(plan, Processor.GPU) and len(self.turns) % 2:
            slow *= 3.0 if len(self.turns) == self.disturbed_turn else self.unrest
        cpu_us, gpu_us = (tuple(slow * us for us in times[side]) for side in Processor)
        return PassTimes(slow * total, cpu_us, gpu_us)

    @staticmethod
    def uses(plan: ExecutionPlan, side: Processor) -> bool:
        return any(part.processor == side for part in plan.parts)

    def inside(self, layer: int, planned: Any, both: bool) -> float:
        side = planned.processor
        part: OutputPart = planned.part
        words = part.whole_words(self.graph.layers[layer].shape[2])
        sides = (words, None) if side == Processor.CPU else (None, part)
        [times] = self.alone.microseconds([LayerParts(layer, *sides)])
        return times[side] * self.slowness(layer, side) * (self.contention if both else 1.0)

    def plan(self, method: str = "finegrained") -> tuple[Planned, PassCheck]:
        def make(correction: Correction) -> Planned:
            return plan_network(
                self.contents,
                "test device",
                METHODS[method],
                CorrectedTimes(self.alone, correction),
                SHARING.scaled(correction.synchronization),
                measured=CorrectedTimes(self.alone, correction),
            )

        return plan_in_network(make, self.alone, self.passes)


def test_a_prediction_that_holds_needs_one_round() -> None:
    world = World(straight(3, channels=128))
    planned, check = world.plan()
    assert planned.is_split
    assert check.rounds == 1
    assert check.agrees
    singles, tried = world.turns
    assert [World.uses(plan, Processor.GPU) for plan in singles] == [False, True]
    assert tried[1] == planned.plan
    assert check.pass_us == pytest.approx(world.run(planned.plan).total_us)
    assert check.gain > 1.3


@pytest.mark.parametrize("method", ["finegrained", "codl", "ulayer", "combined", "search"])
@pytest.mark.parametrize("network", [straight(4, channels=128), residual(3), forked(2)])
def test_prediction_and_pass_agree_in_the_end(method: str, network: FileContents) -> None:
    """Every other layer is cold on the CPU, both disturb each other, synchronizing is expensive."""
    world = World(
        network,
        lambda layer, side: 1.8 if side == Processor.CPU and layer % 2 else 1.1,
        contention=1.25,
        sync_us=5.0,
    )
    planned, check = world.plan(method)
    assert check.agrees
    assert check.error == pytest.approx(check.predicted_us / check.pass_us - 1)
    assert abs(check.error) <= AGREEMENT
    assert check.pass_us <= check.home_us
    assert planned.plan.predicted_ms == pytest.approx(check.predicted_us / 1000)


def test_cold_weights_move_the_cut() -> None:
    """A layer that the CPU is slow at inside the network leaves more of it to the GPU."""
    network = straight(2, channels=256)

    def cuts(world: World) -> list[int]:
        planned, _ = world.plan()
        return [stage.cut for stage in planned.stages if stage.placement == Placement.CHANNELS]

    warm = cuts(World(network))
    cold = cuts(World(network, lambda _layer, side: 2.0 if side == Processor.CPU else 1.0))
    assert len(warm) == len(cold) == 2
    assert min(cold) > max(warm)


def test_expensive_synchronization_is_found_out() -> None:
    """Alone they took 2 us; inside the network cutting is not worth its waiting."""
    planned, check = World(straight(3, channels=64), sync_us=200.0).plan()
    assert not planned.is_split
    assert check.pass_us == check.home_us


def test_rounds_end_where_the_device_does_not_repeat_itself() -> None:
    world = World(straight(3, channels=128), unrest=1.3)
    planned, check = world.plan()
    assert check.rounds == ROUNDS
    assert len(world.turns) == ROUNDS + 1
    assert not check.agrees
    assert check.predicted_us in (
        pytest.approx(check.pass_us * ratio, rel=AGREEMENT) for ratio in (1.3, 1 / 1.3)
    )
    assert planned.is_split
    assert check.gain > 1.3


def test_one_disturbed_turn_does_not_refuse_a_plan_that_gained() -> None:
    """That in which the best plan is repeated."""
    world = World(straight(3, channels=128), unrest=1.3, disturbed_turn=ROUNDS + 1)
    planned, check = world.plan()
    assert len(world.turns) == ROUNDS + 2
    assert planned.is_split
    assert check.gain > 1.3


def test_a_prediction_holds_at_another_speed() -> None:
    """The device slows down all the time; all times are those of the first turn."""
    still, warming = (World(straight(3, channels=128), drift=drift) for drift in (1.0, 1.1))
    (planned, check), (other, other_check) = still.plan(), warming.plan()
    assert other.plan.parts == planned.plan.parts
    assert other_check.agrees
    assert other_check.slowness == pytest.approx(1.1)
    assert other_check.pass_us == pytest.approx(1.1**2 * check.pass_us)  # as it was measured
    assert other_check.home_us == pytest.approx(1.1**2 * check.home_us)


def test_a_machine_that_became_slower_is_not_measured() -> None:
    """Its processors starve unequally: what a plan gains there says nothing."""
    world = World(straight(3, channels=128), drift=1.31)
    with pytest.raises(
        DeviceError, match=r"at most 1\.3 times as slow as at first, got 2\.25 times"
    ):
        world.plan()
    assert len(world.turns) == 1 + ATTEMPTS


def test_a_machine_that_is_slow_for_a_while_is_measured_again() -> None:
    """Here it is in the turn after the first one, three times as slow."""
    quiet, world = World(straight(3, channels=128)), World(straight(3, channels=128))
    run = world.run
    world.run = lambda plan: run(plan).over(1 / 3 if len(world.turns) == 2 else 1)  # type: ignore[method-assign]
    planned, check = world.plan()
    assert len(world.turns) == 3
    assert (planned.plan.parts, check) == (quiet.plan()[0].plan.parts, quiet.plan()[1])


def test_a_plan_that_loses_gives_way_to_one_processor() -> None:
    """Contention eats every gain, and never shows alone."""
    planned, check = World(straight(3, channels=128), contention=2.5).plan()
    assert not planned.is_split
    assert {part.processor for part in planned.plan.parts} == {check.home}
    assert check.pass_us == check.home_us
