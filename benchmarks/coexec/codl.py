"""CoDL's evaluation on whole networks: its figures 15 and 17 to 22.

    python -m benchmarks.coexec.codl --testbed g1c1-avx2 --only codl_quicknet

One run of a network has all of them: times of both processors, of CoDL's plan, of its plan without
chains and of those that cut by rows or by channels only (figures 15 and 18); which layers are cut
how, and how long chains are (17 and 19); what an inference takes beyond its stages with chains and
without (20); energy, where the machine has a source for it (21), and memory of activations (22).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.networks import check_equal
from benchmarks.coexec.paper_networks import TITLES, network_file
from benchmarks.coexec.plans import Planner
from phonebit import Network
from phonebit.energy import EnergyError
from phonebit.energy import measure as measure_energy
from phonebit.network.random_inputs import random_inputs
from phonebit.planner.measure.in_network import exchange_us
from phonebit.planner.measure.measuring import PassTimes, measure_pass
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.planning import Planned
from phonebit.planner.search.stages import Placement

CODL: Final = METHODS["codl"]
WAYS: Final = {
    "codl": CODL,
    "without_chains": replace(CODL, chains=False),
    "rows": replace(CODL, chains=False, dimensions=(Placement.ROWS,)),
    "channels": replace(CODL, chains=False, dimensions=(Placement.CHANNELS,)),
}
TIMES_SHARE: Final = 0.6
"""Of the budget, for whole inferences; the rest is for what else is measured."""
ENERGY_S: Final = 1.0
TURNS: Final = 25
"""Passes of each plan whose stages are timed."""


def measure_network(name: str, bench: Bench) -> dict[str, Any]:
    """One network in all ways."""
    path = network_file(bench.networks, name, "exact")
    planner = Planner(bench.profile, bench.testbed.cpu_cores)
    plans = {way: planner.plan(path, method) for way, method in WAYS.items()}
    networks = bench.alone(path)
    networks |= {way: bench.load(path, plan=planned.plan) for way, planned in plans.items()}
    check_equal(networks, name)
    result = {
        "network": name,
        **bench.compete(networks, TIMES_SHARE),
        "plans": {way: plan_facts(planned) for way, planned in plans.items()},
        "arena_bytes": {key: each.memory["arena_bytes"] for key, each in networks.items()},
        "energy": {key: energy_of(networks[key]) for key in ("cpu", "gpu", "codl")},
    }
    del networks
    for way, passes in passes_in_turns(bench, path, plans).items():
        typical = PassTimes.typical(passes)
        exchange_ms = exchange_us(plans[way].stages, typical) / 1e3
        result["plans"][way] |= {"exchange_ms": exchange_ms, "pass_ms": typical.total_us / 1e3}
    return result


def passes_in_turns(
    bench: Bench, path: Path, plans: Mapping[str, Planned]
) -> dict[str, list[PassTimes]]:
    """Times of passes by each plan."""
    engines = {way: bench.measuring_engine(path, of.plan) for way, of in plans.items()}
    found: dict[str, list[PassTimes]] = {way: [] for way in plans}
    for _ in range(TURNS):
        for way, engine in engines.items():
            found[way].append(measure_pass(engine))
    return found


def plan_facts(planned: Planned) -> dict[str, Any]:
    """How a plan cuts the network: layers by placement, the lengths of its chains."""
    layers: Counter[str] = Counter()
    for stage in planned.stages:
        layers[stage.placement] += len(stage.parts)
    chains = [len(of.parts) for of in planned.stages if of.placement == Placement.CHAIN]
    return {
        "predicted_ms": planned.total_us / 1e3,
        "layers": dict(layers),
        "chains": sorted(chains, reverse=True),
    }


def energy_of(network: Network) -> dict[str, Any]:
    """Millijoules of an image and where they are from, or why there are none."""
    try:
        result = measure_energy(network, random_inputs(network.inputs, 1), ENERGY_S, idle=False)
    except EnergyError as error:
        return {"not_measured": str(error)}
    return {"energy_mj": result.energy_mj, "source": result.source}


if __name__ == "__main__":
    experiments = {f"codl_{name}": partial(measure_network, name) for name in TITLES}
    sys.exit(main(experiments, __doc__, budget_s=900))
