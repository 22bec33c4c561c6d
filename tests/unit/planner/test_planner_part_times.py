"""Times of parts: asked for together, and once for each shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from phonebit.errors import InputError
from phonebit.planner import OutputPart, Processor
from phonebit.planner.predict.kernels import NoKernelError
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.profile import ALL, LatencyPredictor
from phonebit.planner.predict.ulayer import LogLine, operations_of
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import MeasuredTimes, PredictedTimes
from phonebit.planner.search.planning import plan_network
from phonebit.planner.search.stages import LayerParts, Placement, cut_in_two, on_one
from support.planner_times import SyncCosts, straight

CONTENTS = straight(3)
GRAPH = NetworkGraph.of(CONTENTS)
SHAPES = [LayerShape.of(CONTENTS, index) for index in range(len(GRAPH.layers))]


@dataclass
class Channels:
    """Predicts the number of channels, on the GPU tenfold."""

    calls: list[tuple[Processor, int]] = field(default_factory=list)

    def microseconds_of(
        self, processor: Processor, parts: Sequence[tuple[LayerShape, OutputPart]]
    ) -> np.ndarray:
        self.calls.append((processor, len(parts)))
        factor = 10 if processor == Processor.GPU else 1
        return np.array([float(factor * part.channels) for _, part in parts])


def cuts(layer: int) -> list[LayerParts]:
    places = (16, 32, 48)
    return [cut_in_two(GRAPH.layers[layer], Placement.CHANNELS, cut).parts[0] for cut in places]


def test_predictors_are_asked_once_for_all_parts_and_for_equal_layers() -> None:
    """The CPU begins at whole words of 32 channels: with 48 of 64 left to it, it computes all."""
    predictor = Channels()
    times = PredictedTimes(SHAPES, predictor)
    assert times.microseconds(cuts(1)) == [(64, 160), (32, 320), (32, 480)]
    assert times.microseconds(cuts(2)) == times.microseconds(cuts(1))
    assert predictor.calls == [(Processor.CPU, 2), (Processor.GPU, 3)]


def test_a_processor_without_a_part_takes_no_time() -> None:
    times = PredictedTimes(SHAPES, Channels())
    parts = [on_one(GRAPH.layers[1], side).parts[0] for side in Processor]
    assert times.microseconds(parts) == [(64, 0), (0, 640)]


class Picky(Channels):
    """Has no GPU kernel for an odd number of words."""

    def microseconds_of(
        self, processor: Processor, parts: Sequence[tuple[LayerShape, OutputPart]]
    ) -> np.ndarray:
        times = super().microseconds_of(processor, parts)
        if processor == Processor.GPU:
            times[[part.channel_end // 16 % 2 > 0 for _, part in parts]] = math.inf
        return times


def test_parts_without_a_kernel_take_for_ever() -> None:
    times = PredictedTimes(SHAPES, Picky())
    assert times.microseconds(cuts(1)) == [(64, math.inf), (32, 320), (32, math.inf)]


def test_predictors_know_which_parts_have_no_kernel() -> None:
    def describe(
        layer: LayerShape, processor: Processor, part: OutputPart
    ) -> tuple[str, tuple[int, int]]:
        if part.rows > 2:
            raise NoKernelError("no kernel")
        return operations_of(layer, processor, part)

    predictor = LatencyPredictor(describe, {Processor.GPU: {ALL: LogLine(0.0, 1.0)}})
    parts = [SHAPES[1].whole._replace(row_end=row) for row in (1, 2, 3, 4)]
    found = predictor.microseconds_of(Processor.GPU, [(SHAPES[1], part) for part in parts])
    row = SHAPES[1].operations(parts[0])
    assert found.tolist() == [pytest.approx(row), pytest.approx(2 * row), math.inf, math.inf]


class Broken(Channels):
    """Cannot predict at all."""

    def microseconds_of(
        self, processor: Processor, parts: Sequence[tuple[LayerShape, OutputPart]]
    ) -> np.ndarray:
        raise InputError("a kernel's header is damaged")


def test_other_errors_of_a_predictor_are_no_reason_to_plan_without_it() -> None:
    with pytest.raises(InputError, match="damaged"):
        PredictedTimes(SHAPES, Broken()).microseconds(cuts(1))


def test_plans_avoid_parts_without_a_kernel() -> None:
    planned = plan_network(
        CONTENTS,
        "device",
        replace(METHODS["finegrained"], channel_step=16),
        PredictedTimes(SHAPES, Picky()),
        SyncCosts(1),
        margin=0.0,
    )
    assert planned.total_us < math.inf
    cuts_made = {stage.cut for stage in planned.stages if stage.placement == Placement.CHANNELS}
    assert cuts_made <= {32}


def test_equal_layers_are_measured_once() -> None:
    asked: list[LayerParts] = []

    def measure(parts: LayerParts) -> tuple[float, float]:
        asked.append(parts)
        return 1.0, 2.0

    times = MeasuredTimes(SHAPES, measure)
    assert times.microseconds(cuts(1)) == [(1, 2)] * 3
    assert times.microseconds(cuts(3)) == [(1, 2)] * 3
    assert asked == cuts(1)
    assert len(times.known) == 3
