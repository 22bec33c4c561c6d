"""Stages that a plan may consist of: a layer on one processor or cut, a chain, branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from phonebit.planner.plan.execution_plan import ExecutionPlan, OutputPart, PlannedPart, Processor
from phonebit.planner.search.network_graph import GraphLayer


class Placement(StrEnum):
    """Where the layers of a stage run."""

    CPU = "cpu"
    GPU = "gpu"
    ROWS = "rows"
    CHANNELS = "channels"
    CHAIN = "chain"
    BRANCHES = "branches"


@dataclass(frozen=True)
class LayerParts:
    """Who computes what of one layer in a stage."""

    layer: int
    cpu: OutputPart | None
    gpu: OutputPart | None

    @property
    def sides(self) -> list[tuple[Processor, OutputPart]]:
        """The parts that there are, the GPU's first."""
        both = (Processor.GPU, self.gpu), (Processor.CPU, self.cpu)
        return [(side, part) for side, part in both if part is not None]


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage of a plan: layers that follow each other in the file.

    Args:
        placement: What kind of stage it is.
        parts: One entry for each layer ``begin .. end - 1``, in order.
        cut: Rows or channels of the last layer that the GPU has; 0 where no layer is cut.
    """

    placement: Placement
    parts: tuple[LayerParts, ...]
    cut: int = 0

    @cached_property
    def begin(self) -> int:
        """Its first layer."""
        return self.parts[0].layer

    @cached_property
    def end(self) -> int:
        """The layer after its last."""
        return self.parts[-1].layer + 1

    @property
    def processor(self) -> Processor | None:
        """The processor that has all of it; None where both work."""
        return Processor.__members__.get(self.placement.name)


def on_one(layer: GraphLayer, processor: Processor) -> Stage:
    """A layer as a whole on one processor."""
    cpu, gpu = (layer.geometry.whole if side == processor else None for side in Processor)
    return Stage(Placement[processor.name], (LayerParts(layer.index, cpu, gpu),))


def cut_in_two(layer: GraphLayer, placement: Placement, cut: int) -> Stage:
    """A layer of which the GPU computes the rows or channels below a cut, the CPU the others."""
    is_row, whole = placement == Placement.ROWS, layer.geometry.whole
    gpu, cpu = whole.cut(row=cut) if is_row else whole.cut(channel=cut)
    return Stage(placement, (LayerParts(layer.index, cpu, gpu),), cut)


def as_plan(
    stages: Sequence[Stage], device: str, method: str, predicted_ms: float
) -> ExecutionPlan:
    """Stages as the plan that files hold."""
    planned = (
        PlannedPart(number, side, parts.layer, part)
        for number, stage in enumerate(stages)
        for parts in stage.parts
        for side, part in parts.sides
    )
    return ExecutionPlan(device, method, predicted_ms, tuple(planned))
