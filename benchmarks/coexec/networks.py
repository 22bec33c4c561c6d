"""Whole networks: every way to plan, beside both processors alone, in turns.

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
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.paper_networks import TITLES, network_file
from benchmarks.coexec.plans import VARIANTS, Planner, Variant
from benchmarks.coexec.tables import CONTROL
from benchmarks.coexec.testbed import TestbedError
from benchmarks.coexec.turns import Budget, compete
from phonebit import Network, VerificationError
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.network.random_inputs import random_inputs
from phonebit.output_files import write_atomically
from phonebit.planner import with_plan
from phonebit.planner.measure.measuring import measure_parts
from phonebit.planner.planning_files import plan as plan_file
from phonebit.planner.search.planning import Planned

LAYERS_SHARE: Final = 0.2
"""Of the budget, for what layers take one by one."""


def check_equal(network: Network, other: Network, what: str) -> None:
    """Raises VerificationError where the networks give different results."""
    picture = random_inputs(network.inputs, 1)
    theirs = other.forward(picture)
    if differ := sum(
        int(np.sum(y != theirs[name])) for name, y in network.forward(picture).items()
    ):
        raise VerificationError(
            "a plan changes the result", where=what, expected="equal bits", got=f"{differ} differ"
        )


def planned_network(
    bench: Bench, name: str, variant: Variant
) -> tuple[Network, Planned, dict[str, Any]]:
    """A network loaded with a plan; what is to be said of the plan."""
    path = network_file(bench.networks, name, variant.precision)
    if variant.is_measured:
        return measured_network(bench, path, variant)
    planned, seconds = Planner(bench.profile, bench.testbed.cpu_cores).plan(path, variant)
    facts = facts_of(variant, planned, seconds)
    if variant.is_tried:
        output = planned_file(bench, path)
        write_atomically(output, file_bytes(with_plan(read_contents(path), planned.plan)))
        network, outcome = tried_network(bench, output)
        return network, planned, facts | outcome
    network = bench.load(path, plan=planned.plan, precision=variant.precision)
    return network, planned, facts


def facts_of(variant: Variant, planned: Planned, seconds: float) -> dict[str, Any]:
    """What is to be said of a plan."""
    return {
        "is_guarded": variant.is_guarded,
        "planning_s": seconds,
        "predicted_ms": planned.total_us / 1e3,
        "single_predicted_ms": planned.home_us / 1e3,
    }


def planned_file(bench: Bench, path: Path) -> Path:
    """Where a network's file with a plan for this testbed is."""
    return path.with_name(f"{path.stem}-{bench.testbed.name}.pbit")


def tried_network(bench: Bench, path: Path) -> tuple[Network, dict[str, Any]]:
    """A network behind the trial of the file's own plan, and what it found, now or before."""
    network = bench.load(path)
    if not (network.coexec["is_on_trial"] or network.coexec["cpu_ms"]):
        raise TestbedError(f"{path}: the plan is not on trial")
    picture = random_inputs(network.inputs, 1)
    while network.coexec["is_on_trial"]:
        network.forward(picture)
    return network, {"is_tried": True, "trial": network.coexec}


def measured_network(
    bench: Bench, path: Path, variant: Variant
) -> tuple[Network, Planned, dict[str, Any]]:
    """The same for ``phonebit plan --measure``."""
    output = planned_file(bench, path)
    begin = time.perf_counter()
    report = plan_file(
        path,
        bench.profile if bench.profile.is_file() else None,
        output,
        measure=True,
        device=bench.both,
        threads=bench.testbed.cpu_cores,
    )
    facts = facts_of(variant, report.planned, time.perf_counter() - begin)
    facts["measurements"] = report.measurements
    if report.check is not None:
        facts |= {"predicted_ms": report.check.predicted_us / 1e3, "check": report.check.to_dict()}
    network, outcome = tried_network(bench, output)
    return network, report.planned, facts | outcome


def measure_network(name: str, bench: Bench) -> dict[str, Any]:
    """One network with all variants."""
    exact = network_file(bench.networks, name, "exact")
    load_on_cpu = partial(Network.load, exact, device=bench.cpu, threads=bench.testbed.cpu_cores)
    networks = {"cpu": load_on_cpu(), "gpu": Network.load(exact, device=bench.gpu)}
    plans, facts = {}, {}
    for key, variant in VARIANTS.items():
        if not (bench.profile.is_file() or variant.is_measured):
            continue
        networks[key], plans[key], facts[key] = planned_network(bench, name, variant)
        if variant.precision == "exact":
            check_equal(networks["cpu"], networks[key], f"{name}, {key}")
    networks[CONTROL] = load_on_cpu()
    picture = random_inputs(networks["cpu"].inputs, 1)
    calls = {key: partial(network.forward, picture) for key, network in networks.items()}
    budget = Budget(bench.budget.left_s * (1 - LAYERS_SHARE))
    result = {
        "network": name,
        "layers": len(networks["cpu"].layers),
        **compete(calls, bench.canary(), budget),
        "plans": facts,
    }
    if "finegrained" in plans:
        result["layer_by_layer_ms"] = layer_by_layer_ms(bench, exact, plans["finegrained"])
    return result


def layer_by_layer_ms(bench: Bench, path: Path, planned: Planned) -> float:
    """The sum over a plan's layers, each measured as if its result had to be handed over."""
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
