"""µLayer's evaluation on whole networks: its figures 5, 6, 8 and 16 to 18.

    python -m benchmarks.coexec.ulayer --testbed g1c1-avx2 --only ulayer_vgg16

One run of a network has all of them: layers on either processor (figure 5), the network there in
float32 and in the types that suit each (6 and 8), what µLayer's three optimizations add one after
the other (17) to whole layers on either processor (16), and energy, where the machine has a source
for it (18). Accuracies (figure 10) are in the table of trained networks.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.coexec.codl import energy_of, passes_in_turns
from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.networks import check_equal
from benchmarks.coexec.paper_networks import TITLES, network_file
from benchmarks.coexec.plans import LAYER_TO_PROCESSOR, Planner, Variant
from phonebit import Network
from phonebit.devices.loading import Precision
from phonebit.planner import Processor
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.planning import Planned

ULAYER: Final = METHODS["ulayer"]
BY_CHANNELS: Final = replace(ULAYER, branches=False)
PRECISIONS: Final[dict[str, Precision]] = {"": "exact", "_fast": "fast"}
"""Of the processors alone, by the end of the candidate's name."""
WAYS: Final = {
    "layer_to_processor": Variant(LAYER_TO_PROCESSOR, "fast"),
    "channels": Variant(BY_CHANNELS),
    "channels_fast": Variant(BY_CHANNELS, "fast"),
    "ulayer": Variant(ULAYER, "fast"),
}
"""Whole layers; then one optimization of µLayer after the other."""
TIMES_SHARE: Final = 0.8
"""Of the budget, for whole inferences; the rest is for what else is measured."""


def measure_network(name: str, bench: Bench) -> dict[str, Any]:
    """One network in all ways."""
    planner = Planner(bench.profile, bench.testbed.cpu_cores)
    files = {kind: network_file(bench.networks, name, kind) for kind in PRECISIONS.values()}
    plans = {way: planner.plan(files[of.precision], of.method) for way, of in WAYS.items()}
    networks: dict[str, Network] = {}
    for end, kind in PRECISIONS.items():
        alone = bench.alone(files[kind], precision=kind)
        networks |= {f"{side}{end}": network for side, network in alone.items()}
    for way, variant in WAYS.items():
        kind = variant.precision
        networks[way] = bench.load(files[kind], plan=plans[way].plan, precision=kind)
    check_equal({key: networks[key] for key in ("cpu", "gpu", "channels")}, name)
    found = bench.compete(networks, TIMES_SHARE)
    spenders = ("cpu_fast", "gpu_fast", "layer_to_processor", "ulayer")
    energy = {key: energy_of(networks[key]) for key in spenders}
    del networks
    layers = layers_ms(bench, files["exact"], plans["channels"])
    return {"network": name, **found, "energy": energy, "layers": layers}


def layers_ms(bench: Bench, path: Path, planned: Planned) -> list[dict[str, Any]]:
    """Each layer on either processor inside an inference of that processor: medians over turns."""
    homes = {side.name.lower(): planned.at_home(side) for side in Processor}
    passes = passes_in_turns(bench, path, homes)
    turns = {"cpu": [of.cpu_us for of in passes["cpu"]], "gpu": [of.gpu_us for of in passes["gpu"]]}
    return [
        {"name": layer.name}
        | {side: median(turn[at] for turn in of_side) / 1e3 for side, of_side in turns.items()}
        for at, layer in enumerate(planned.costs.graph.layers)
    ]


if __name__ == "__main__":
    experiments = {f"ulayer_{name}": partial(measure_network, name) for name in TITLES}
    sys.exit(main(experiments, __doc__, budget_s=900))
