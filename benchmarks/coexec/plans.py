"""The plans that are compared: the three papers' systems, and those of ``phonebit plan``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from phonebit.devices.loading import Precision
from phonebit.format.contents import FileContents
from phonebit.format.reader import read_contents
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.profile import (
    ALL,
    DeviceProfile,
    ProcessorModels,
    read_profile,
)
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.search.methods import CHANNEL_GRAIN, METHODS, Method
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import PredictedTimes
from phonebit.planner.search.planning import Planned, plan_network
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, cut_in_two


@dataclass(frozen=True)
class Variant:
    """A way to plan and to run."""

    method: Method  # how layers may be cut, and by which predictor
    precision: Precision = "exact"  # of the network; "fast" reads the file with 8-bit float weights
    # Whether ``phonebit plan`` plans, so that a plan must gain more than the predictor's typical
    # error. The papers' systems take what is predicted to be faster.
    is_guarded: bool = False
    # Whether what is planned is measured, as ``phonebit plan --measure`` does.
    is_measured: bool = False
    # Whether the plan is the file's own and auto-selection compares it before it is measured, as it
    # is for users. Others are followed.
    is_tried: bool = False


FINEGRAINED: Final = METHODS["finegrained"]
COMBINED: Final = METHODS["combined"]
"""What ``phonebit plan`` does."""
LAYER_TO_PROCESSOR: Final = Method("ulayer", (), "ulayer")
"""Whole layers, by its predictor: µLayer, section 7.2."""
VARIANTS: Final = {
    "layer_to_processor": Variant(LAYER_TO_PROCESSOR),
    "ulayer": Variant(METHODS["ulayer"], "fast"),
    "codl": Variant(METHODS["codl"]),
    "finegrained": Variant(FINEGRAINED),
    "planned": Variant(COMBINED, is_guarded=True),
    "tried": Variant(COMBINED, is_guarded=True, is_tried=True),
    "planned_measured": Variant(COMBINED, is_guarded=True, is_measured=True, is_tried=True),
}


def without_augmentation(profile: DeviceProfile) -> DeviceProfile:
    """A profile whose Fine-Grained predictors do not look at the dispatch: the paper's section 5.5.

    They have one model for all kernels, which looks at the geometry alone.
    """

    def plain(models: ProcessorModels) -> ProcessorModels:
        return replace(models, finegrained={ALL: models.finegrained[ALL]})

    cpu = {threads: plain(models) for threads, models in profile.cpu.items()}
    return replace(profile, gpu=plain(profile.gpu), cpu=cpu)


class Planner:
    """Plans by a device profile, for so many threads of the CPU."""

    def __init__(self, path: Path, threads: int, *, is_augmented: bool = True) -> None:
        profile = read_profile(path)
        self._profile = profile if is_augmented else without_augmentation(profile)
        self._threads = threads

    def plan(self, path: Path, method: Method) -> Planned:
        """What a network's plan is, whatever little it gains."""
        contents = read_contents(path)
        times, sharing = self._times_and_sharing(contents, method.cost_models)
        return plan_network(contents, self._profile.key(self._threads), method, times, sharing, 0.0)

    def _times_and_sharing(
        self, contents: FileContents, method: str
    ) -> tuple[PredictedTimes, SharingCost]:
        shapes = [layer.geometry for layer in NetworkGraph.of(contents).layers]
        predictor = self._profile.predictor(method, self._threads)
        sharing = self._profile.sharing_cost(method, self._threads)
        return PredictedTimes(shapes, predictor), sharing

    def channels(self, path: Path, layer: int, method: str) -> int:
        """How many channels of a layer the GPU should compute; 0 or all where one should alone.

        Source: Fine-Grained, section 2.
        """
        contents = read_contents(path)
        graph = NetworkGraph.of(contents)
        costs = StageCosts(graph, *self._times_and_sharing(contents, method))
        of = graph.layers[layer]
        channels = of.shape[2]
        fine = replace(FINEGRAINED, channel_step=CHANNEL_GRAIN)
        cuts = fine.cuts(of, Placement.CHANNELS)
        stages = [cut_in_two(of, Placement.CHANNELS, cut) for cut in cuts]
        costs.part_times([stage.parts[0] for stage in stages])
        times = {stage.cut: costs.alone_us(stage) for stage in stages}
        times[0] = costs.single_us[Processor.CPU][layer]
        times[channels] = costs.single_us[Processor.GPU][layer]
        return min(times, key=times.__getitem__)
