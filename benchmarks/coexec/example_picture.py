"""Draws the plan of a network for two made-up processors, the picture of docs/coexecution.md.

    python -m benchmarks.coexec.example_picture docs/images/planned_network.svg

Its times are a formula, not a measurement, so that the picture is the same on every machine;
``phonebit plan --picture`` draws plans for real ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from phonebit.format.reader import parse_contents
from phonebit.models.networks import converted
from phonebit.planner import OutputPart
from phonebit.planner.explain import explain
from phonebit.planner.network_graph import NetworkGraph
from phonebit.planner.partition import method_named
from phonebit.planner.plan_picture import plan_svg
from phonebit.planner.planning import PlannerSettings, plan_network
from phonebit.planner.predictors import SharingCost
from phonebit.planner.stages import LayerParts

CPU = (2.0, 9e-6)
"""Microseconds to start a layer, and for each product or pooled element."""
GPU = (12.0, 6e-6)


class FormulaTimes:
    """A start and a rate."""

    def __init__(self, graph: NetworkGraph) -> None:
        self.graph = graph

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Of the CPU and the GPU for each entry."""
        return [
            (self._of(entry.layer, entry.cpu, CPU), self._of(entry.layer, entry.gpu, GPU))
            for entry in parts
        ]

    def _of(self, index: int, part: OutputPart | None, speed: tuple[float, float]) -> float:
        if part is None:
            return 0.0
        layer = self.graph.layers[index]
        taps = layer.window.kernel**2
        if layer.can_cut_channels:
            taps *= self.graph.tensors[layer.operands[0]].channels
        pixels = (part.row_end - part.row_begin) * layer.shape[1]
        outputs = pixels * (part.channel_end - part.channel_begin)
        return speed[0] + outputs * taps * speed[1]


def main(path: Path) -> None:
    """Plans YOLOv2-Tiny as CoDL does and draws it."""
    contents = parse_contents(converted("yolov2_tiny").content)
    times = FormulaTimes(NetworkGraph.of(contents))
    planned = plan_network(
        contents,
        "two made-up processors",
        method_named("codl"),
        times,
        SharingCost(sync_us=60),
        PlannerSettings(),
    )
    gain = planned.home_us / planned.total_us
    title = f"YOLOv2-Tiny on two made-up processors, planned by codl: {gain:.2f} x the faster one"
    path.write_text(plan_svg(explain(planned, is_predicted=True), title), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
