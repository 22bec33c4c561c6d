"""Whole networks: every way to plan, with both processors alone, in turns.

    python -m benchmarks.coexec.networks --testbed g1c1-avx2 --budget-s 600
    python -m benchmarks.coexec.networks --testbed g1c1-avx2 --only network_googlenet network_vgg16

From these come Fine-Grained's table 3 and the guard: planned execution is not more than 2 % slower
than the better single processor. The CPU alone takes part twice, as two loaded networks: what lies
between these is not the plans' doing. Results of all plans are compared with the CPU's, bit for bit
(but not those in precision "fast", where each processor has number types of its own). Where the
testbed has no profile, plans are those of ``phonebit plan`` without one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.paper_networks import TITLES, network_file
from benchmarks.coexec.plans import VARIANTS, Planner, Variant
from benchmarks.coexec.tables import CONTROL
from benchmarks.coexec.testbed import TestbedError
from phonebit import Network, VerificationError
from phonebit.network.random_inputs import random_inputs
from phonebit.planner.measure.measuring import measure_parts
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.planning_files import plan as plan_file
from phonebit.planner.search.planning import Planned
from phonebit.planner.search.stage_costs import StageCosts

LAYERS_SHARE: Final = 0.2
"""Of the budget, for what layers take one by one."""


def check_equal(networks: Mapping[str, Network], name: str) -> None:
    """Raises VerificationError where a network gives other results than the one on the CPU."""
    image = random_inputs(networks["cpu"].inputs, 1)
    expected = networks["cpu"].forward(image)
    for way, network in networks.items():
        found = network.forward(image)
        if differ := sum(int(np.sum(y != found[key])) for key, y in expected.items()):
            raise VerificationError(
                "a plan changes the result",
                where=f"{name}, {way}",
                expected="equal bits",
                got=f"{differ} differ",
            )


def planned_network(
    bench: Bench, name: str, variant: Variant
) -> tuple[Network, Planned, dict[str, Any]]:
    """A network loaded with a plan; what is to be said of the plan."""
    path = network_file(bench.networks, name, variant.precision)
    output = path.with_name(f"{path.stem}-{bench.testbed.name}.pbit")
    begin = time.perf_counter()
    more: dict[str, Any] = {}
    if variant.is_guarded:
        report = plan_file(
            path,
            bench.profile if bench.profile.is_file() else None,
            output,
            measure=variant.is_measured,
            device=bench.both,
            threads=bench.testbed.cpu_cores,
        )
        planned, more["measurements"] = report.planned, report.measurements
        if report.check is not None:
            predicted_ms = report.check.predicted_us / 1e3
            more |= {"predicted_ms": predicted_ms, "check": report.check.to_dict()}
    else:
        planned = Planner(bench.profile, bench.testbed.cpu_cores).plan(path, variant.method)
    facts = {
        "is_guarded": variant.is_guarded,
        "planning_s": time.perf_counter() - begin,
        "predicted_ms": planned.total_us / 1e3,
        "single_predicted_ms": planned.home_us / 1e3,
        "attainable_ms": attainable_us(planned.costs, planned.home) / 1e3,
        **more,
    }
    if variant.is_tried:
        network = bench.load(output)
        return network, planned, facts | {"is_tried": True, "trial": selection_of(network, output)}
    network = bench.load(path, plan=planned.plan, precision=variant.precision)
    return network, planned, facts


def selection_of(network: Network, path: Path) -> Any:
    """What auto-selection found of the file's own plan, now or before."""
    if not (network.coexec["is_on_trial"] or network.coexec["cpu_ms"]):
        raise TestbedError(f"{path}: the plan is not on trial")
    image = random_inputs(network.inputs, 1)
    while network.coexec["is_on_trial"]:
        network.forward(image)
    return network.coexec


def attainable_us(costs: StageCosts, home: Processor) -> float:
    """A network of which each layer is cut so that both parts take as long, or stays at home.

    The GPU's part is launched, and a launch, which takes as long as its quickest layer, cannot be
    cut: with a share s of the layer on the GPU, c (1 - s) = launch + (g - launch) s. Then the
    processors meet.
    """
    cpu_us, gpu_us = (costs.single_us[side] for side in Processor)
    launch_us = min(gpu_us)
    cut_us = (
        cpu * gpu / (cpu + gpu - launch_us) + costs.sharing.sync_us
        for cpu, gpu in zip(cpu_us, gpu_us, strict=True)
    )
    return sum(map(min, cut_us, costs.single_us[home]))


def measure_network(name: str, bench: Bench) -> dict[str, Any]:
    """One network with all variants."""
    exact = network_file(bench.networks, name, "exact")
    networks = bench.alone(exact)
    plans, facts = {}, {}
    for key, variant in VARIANTS.items():
        if bench.profile.is_file() or variant.is_measured:
            networks[key], plans[key], facts[key] = planned_network(bench, name, variant)
    networks[CONTROL] = Network.load(exact, device=bench.cpu, threads=bench.testbed.cpu_cores)
    others = [key for key, variant in VARIANTS.items() if variant.precision != "exact"]
    check_equal({key: each for key, each in networks.items() if key not in others}, name)
    result = {
        "network": name,
        "layers": len(networks["cpu"].layers),
        **bench.compete(networks, 1 - LAYERS_SHARE),
        "plans": facts,
    }
    if "finegrained" in plans:
        result["layer_by_layer_ms"] = layer_by_layer_ms(bench, exact, plans["finegrained"])
    return result


def layer_by_layer_ms(bench: Bench, path: Path, planned: Planned) -> float:
    """The sum over a plan's layers, each measured as if its result had to be transferred."""
    engine, repeats = bench.measuring_engine(path), 2 if bench.smoke else 5
    times = [
        measure_parts(engine, parts.layer, parts.cpu, parts.gpu, repeats)
        for stage in planned.stages
        for parts in stage.parts
    ]
    return sum(of.total_us for of in times) / 1e3


if __name__ == "__main__":
    experiments = {f"network_{name}": partial(measure_network, name) for name in TITLES}
    sys.exit(main(experiments, __doc__, budget_s=900))
