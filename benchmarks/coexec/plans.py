"""The plans that are compared: the three papers' systems, whole and without one of their parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from phonebit.devices.loading import Precision
from phonebit.format.contents import FileContents
from phonebit.format.reader import read_contents
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict import LayerShape, SharingCost
from phonebit.planner.predict.profile import read_profile
from phonebit.planner.search.methods import CHANNEL_GRAIN, METHODS, Method
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import PredictedTimes
from phonebit.planner.search.planning import Planned, plan_network
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, cut_in_two

PredictorName = Literal["ulayer", "codl", "finegrained", "finegrained_plain"]

CONVOLUTIONS: Final = ("binary_conv2d", "conv2d")
LAYER_TO_PROCESSOR: Final = Method("user", ())
"""µLayer, section 7.2: whole layers."""
CODL: Final = METHODS["codl"]
ULAYER: Final = METHODS["ulayer"]


@dataclass(frozen=True)
class Variant:
    """A way to plan and to run.

    Attributes:
        method: how layers may be cut.
        predictor: by what the plan is chosen; "finegrained_plain" knows nothing of dispatches.
        precision: of the network; "fast" reads the file with 8-bit real weights.
        synchronization: as ``Network.load`` takes it.
        is_guarded: whether a plan must gain more than the predictor's typical error, as
            ``phonebit plan`` demands. The papers' systems take whatever is predicted to be faster.
        is_measured: whether what is planned is measured, as ``phonebit plan --measure`` does.
        is_tried: whether the plan is the file's own and has its trial before it is measured, as it
            is for users. Others are followed.
    """

    method: Method
    predictor: PredictorName
    precision: Precision = "exact"
    synchronization: str = "auto"
    is_guarded: bool = False
    is_measured: bool = False
    is_tried: bool = False


FINEGRAINED: Final = METHODS["finegrained"]
WITHOUT_BRANCHES: Final = replace(ULAYER, branches=False)
WITHOUT_CHAINS: Final = replace(CODL, chains=False)
VARIANTS: Final = {
    "layer_to_processor": Variant(LAYER_TO_PROCESSOR, "ulayer"),
    "ulayer_channels": Variant(WITHOUT_BRANCHES, "ulayer"),
    "ulayer_types": Variant(WITHOUT_BRANCHES, "ulayer", "fast"),
    "ulayer": Variant(ULAYER, "ulayer", "fast"),
    "codl_rows": Variant(replace(WITHOUT_CHAINS, dimensions=(Placement.ROWS,)), "codl"),
    "codl_channels": Variant(replace(WITHOUT_CHAINS, dimensions=(Placement.CHANNELS,)), "codl"),
    "codl_hybrid": Variant(WITHOUT_CHAINS, "codl"),
    "codl": Variant(CODL, "codl"),
    "finegrained": Variant(FINEGRAINED, "finegrained"),
    "finegrained_plain": Variant(FINEGRAINED, "finegrained_plain"),
    "finegrained_events": Variant(FINEGRAINED, "finegrained", synchronization="events"),
    "planned": Variant(FINEGRAINED, "finegrained", is_guarded=True),
    "tried": Variant(FINEGRAINED, "finegrained", is_guarded=True, is_tried=True),
    "finegrained_measured": Variant(
        FINEGRAINED, "finegrained", is_guarded=True, is_measured=True, is_tried=True
    ),
}


class Planner:
    """Plans by a device profile.

    Args:
        path: the profile.
        threads: of the CPU.
    """

    def __init__(self, path: Path, threads: int) -> None:
        self._profile = read_profile(path)
        self._threads = threads

    def costs(self, contents: FileContents, name: PredictorName) -> StageCosts:
        """Predicted costs of a network's stages."""
        return StageCosts(NetworkGraph.of(contents), *self._times_and_sharing(contents, name))

    def plan(self, path: Path, variant: Variant) -> tuple[Planned, float]:
        """The plan of a network, and the seconds that planning took."""
        contents = read_contents(path)
        begin = time.perf_counter()
        times, sharing = self._times_and_sharing(contents, variant.predictor)
        key = self._profile.key(self._threads)
        method = variant.predictor.partition("_")[0]
        margin = self._profile.margin(method) if variant.is_guarded else 0.0
        planned = plan_network(contents, key, variant.method, times, sharing, margin)
        return planned, time.perf_counter() - begin

    def _times_and_sharing(
        self, contents: FileContents, name: PredictorName
    ) -> tuple[PredictedTimes, SharingCost]:
        method, _, plain = name.partition("_")
        shapes = [LayerShape.of(contents, index) for index in range(len(contents.ops))]
        predictor = self._profile.predictor(method, self._threads, augmented=not plain)
        sharing = self._profile.sharing_cost(method, self._threads)
        return PredictedTimes(shapes, predictor), sharing

    def channels(self, path: Path, layer: int, name: PredictorName) -> int:
        """How many channels of a layer the GPU should compute; 0 or all where one should alone.

        Source: Fine-Grained, section 2.
        """
        costs = self.costs(read_contents(path), name)
        of = costs.graph.layers[layer]
        channels = of.shape[2]
        fine = replace(FINEGRAINED, channel_step=CHANNEL_GRAIN)
        cuts = fine.cuts(of, Placement.CHANNELS)
        stages = [cut_in_two(of, Placement.CHANNELS, cut) for cut in cuts]
        costs.part_times([stage.parts[0] for stage in stages])
        times = {stage.cut: costs.alone_us(stage) for stage in stages}
        times[0] = costs.single_us[Processor.CPU][layer]
        times[channels] = costs.single_us[Processor.GPU][layer]
        return min(times, key=times.__getitem__)


def convolution_cuts(placements: Sequence[str], kinds: Sequence[str]) -> list[list[int]]:
    """CoDL, figure 17: how many convolutions a plan cuts by rows, by channels, or not at all.

    Args:
        placements: of ``split_of``.
        kinds: of the layers.

    Returns:
        The three numbers, of each third of the convolutions in their order.
    """
    cuts = [cut for cut, kind in zip(placements, kinds, strict=True) if kind in CONVOLUTIONS]
    thirds = [cuts[len(cuts) * n // 3 : len(cuts) * (n + 1) // 3] for n in range(3)]
    counts = [(of.count("rows"), of.count("channels")) for of in thirds]
    return [
        [rows, channels, len(of) - rows - channels]
        for of, (rows, channels) in zip(thirds, counts, strict=True)
    ]


def split_of(planned: Planned) -> dict[str, Any]:
    """Which layers a plan puts where, and its chains.

    Returns:
        ``placements``: for each layer "cpu", "gpu", "rows", "channels", "chain" or "branches";
        ``chains``: first layer, and the one behind the last.
    """
    placements = {}
    for stage in planned.stages:
        for parts in stage.parts:
            placements[parts.layer] = str(stage.placement)
    chains = [
        [stage.begin, stage.end] for stage in planned.stages if stage.placement == Placement.CHAIN
    ]
    return {
        "placements": [placements[layer] for layer in sorted(placements)],
        "chains": chains,
        "predicted_ms": planned.total_us / 1e3,
        "single_predicted_ms": planned.home_us / 1e3,
    }
