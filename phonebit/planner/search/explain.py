"""Why a plan is what it is: for each layer the choice, what else there was, and the times."""

from __future__ import annotations

from dataclasses import dataclass

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.search.planning import Planned
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import LayerParts, Placement


@dataclass(frozen=True)
class CutTime:
    """A layer's best cut along a dimension, between neighbours on the GPU that wait for it."""

    cut: int
    us: float


@dataclass(frozen=True)
class LayerTimes:
    """A layer's microseconds, without exchange but for the cuts.

    Args:
        rows: Best cut between rows; None: it has none, or the method does not try it.
        channels: Likewise between channels.
        chosen_us: Of what was chosen: the slower processor's part.
    """

    gpu_us: float
    cpu_us: float
    rows: CutTime | None
    channels: CutTime | None
    chosen_us: float


@dataclass(frozen=True)
class LayerChoice:
    """What a plan does with a layer, and why.

    Args:
        stage_us: Microseconds of all of the stage, with the synchronization before it.
        placement: What kind of stage it is; of a branch, the processor is in ``parts``.
        cpu: What the CPU computes of it; None: nothing. ``gpu`` likewise.
        predicted: Times that predictors gave; None for a method that measures.
        measured: Times that were measured; None where nothing was.
    """

    layer: int
    name: str
    op: str
    shape: tuple[int, int, int]
    stage: int
    stage_us: float
    placement: Placement
    cpu: OutputPart | None
    gpu: OutputPart | None
    predicted: LayerTimes | None
    measured: LayerTimes | None

    @property
    def text(self) -> str:
        """``gpu``, ``gpu rows 0:20, cpu rows 20:56``, ``branch on cpu``."""
        sides = LayerParts(self.layer, self.cpu, self.gpu).sides
        texts = (f"{side.name.lower()} {part.text(self.shape)}" for side, part in sides)
        text = ", ".join(map(str.rstrip, texts))
        return f"branch on {text}" if self.placement == Placement.BRANCHES else text


def explain(planned: Planned, *, is_predicted: bool) -> list[LayerChoice]:
    """Each layer's choice, in the file's order; the first costs may be predicted ones."""
    is_measured = not is_predicted or planned.costs is not planned.predicted
    stage_us = planned.costs.stage_us(planned.stages)
    return [
        LayerChoice(
            layer.index,
            layer.name,
            layer.geometry.op,
            layer.shape,
            number,
            stage_us[number],
            stage.placement,
            parts.cpu,
            parts.gpu,
            _times(planned, planned.predicted, parts) if is_predicted else None,
            _times(planned, planned.costs, parts) if is_measured else None,
        )
        for number, stage in enumerate(planned.stages)
        for parts in stage.parts
        for layer in [planned.costs.graph.layers[parts.layer]]
    ]


def _times(planned: Planned, costs: StageCosts, parts: LayerParts) -> LayerTimes:
    def cut_time(dimension: Placement) -> CutTime | None:
        best = planned.best_cuts.get((parts.layer, dimension))
        return None if best is None else CutTime(best.cut, costs.alone_us(best))

    return LayerTimes(
        costs.single_us[Processor.GPU][parts.layer],
        costs.single_us[Processor.CPU][parts.layer],
        cut_time(Placement.ROWS),
        cut_time(Placement.CHANNELS),
        max(costs.part_times([parts])[0]),
    )
