"""Whole networks: every way to plan, beside both processors alone, in turns.

    python -m benchmarks.coexec.networks --gpu-cores 1 --cpu-cores 1 --isa avx2 --budget-s 600
    python -m benchmarks.coexec.networks ... --networks googlenet,vgg16 --variants finegrained,codl

From these come Fine-Grained's table 3, CoDL's figures 17 to 20, µLayer's figures 16 and 17, and the
guard: planned execution is not more than 2 % slower than the better single processor. The CPU alone
takes part twice, as two loaded networks: what lies between these is not the plans' doing. Results
of all plans are compared with the CPU's, bit for bit (but not those in precision "fast", where each
processor has number types of its own).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.network_tables import CONTROL
from benchmarks.coexec.network_work import StageWork, handed_over
from benchmarks.coexec.plans import VARIANTS, Planner, Variant, convolution_cuts, split_of
from benchmarks.coexec.testbed import TestbedError
from benchmarks.coexec.turns import Budget, compete
from phonebit import Network, VerificationError
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.models.networks import build
from phonebit.network.random_inputs import random_inputs
from phonebit.output_files import write_atomically
from phonebit.planner import with_plan
from phonebit.planner.api import plan as plan_file
from phonebit.planner.search.planning import Planned

NETWORKS: Final = ("vgg16", "birealnet18", "yolov2_tiny", "googlenet", "alexnet", "quicknet")
WORK_OF: Final = ("codl_hybrid", "codl", "finegrained")
"""Plans whose stages are measured one by one."""
WORK_SHARE: Final = 0.4
"""Of the budget, for that."""


def network_file(folder: Path, name: str, precision: str) -> Path:
    """The network's file; for "fast" its real weights have 8 bits."""
    weights: FloatWeights = "i8" if precision == "fast" else "f32"
    path = folder / f"{name}-{weights}.pbit"
    if not path.is_file():
        build(name, path, float_weights=weights)
    return path


def check_equal(network: Network, other: Network, what: str) -> None:
    """Raises VerificationError where the networks give different results."""
    picture = random_inputs(network.inputs, 1)
    ours, theirs = np.asarray(network.forward(picture)), np.asarray(other.forward(picture))
    if not np.array_equal(ours, theirs):
        differ = int(np.sum(ours != theirs))
        raise VerificationError(
            "a plan changes the result", where=what, expected="equal bits", got=f"{differ} differ"
        )


def planned_network(
    bench: Bench, name: str, variant: Variant, planner: Planner
) -> tuple[Network, Planned, dict[str, Any]]:
    """A network loaded with a plan; what is to be said of the plan."""
    path = network_file(bench.networks, name, variant.precision)
    if variant.is_measured:
        return measured_network(bench, path, variant)
    planned, seconds = planner.plan(path, variant)
    facts = {"is_guarded": variant.is_guarded, "planning_s": seconds}
    facts |= split_of(planned)
    if variant.is_tried:
        output = planned_file(bench, path)
        write_atomically(output, file_bytes(with_plan(read_contents(path), planned.plan)))
        network, outcome = tried_network(bench, output)
        return network, planned, facts | outcome
    network = bench.load(
        path,
        plan=planned.plan,
        precision=variant.precision,
        synchronization=variant.synchronization,
    )
    return network, planned, facts


def planned_file(bench: Bench, path: Path) -> Path:
    """Where a network's file with a plan for this testbed is."""
    return path.with_name(f"{path.stem}-{bench.testbed.name}.pbit")


def tried_network(bench: Bench, path: Path) -> tuple[Network, dict[str, Any]]:
    """A network behind the trial of the file's own plan, and what the trial found."""
    network = bench.load(path)
    if not network.coexec["is_on_trial"]:
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
        bench.profile,
        output,
        measure=True,
        device=bench.both,
        threads=bench.testbed.cpu_cores,
    )
    seconds = time.perf_counter() - begin
    facts = {"is_guarded": variant.is_guarded, "planning_s": seconds}
    facts["measurements"] = report.measurements
    network, outcome = tried_network(bench, output)
    return network, report.planned, facts | split_of(report.planned) | outcome


def measure_network(name: str, variants: Sequence[str], bench: Bench) -> dict[str, Any]:
    """One network with some variants."""
    planner = Planner(bench.profile, bench.testbed.cpu_cores)
    exact = network_file(bench.networks, name, "exact")
    load_on_cpu = partial(Network.load, exact, device=bench.cpu, threads=bench.testbed.cpu_cores)
    networks = {"cpu": load_on_cpu(), "gpu": Network.load(exact, device=bench.gpu)}
    plans, facts = {}, {}
    for key in variants:
        networks[key], plans[key], facts[key] = planned_network(bench, name, VARIANTS[key], planner)
    for key in variants:
        if VARIANTS[key].precision == "exact":
            check_equal(networks["cpu"], networks[key], f"{name}, {key}")
    networks[CONTROL] = load_on_cpu()
    picture = random_inputs(networks["cpu"].inputs, 1)
    calls = {key: partial(network.forward, picture) for key, network in networks.items()}
    result = compete(calls, bench.canary(), Budget(bench.budget.left_s * (1 - WORK_SHARE)))
    work: dict[str, Planned] = {key: plans[key] for key in WORK_OF if key in plans}
    layers = networks["cpu"].layers
    for plan in facts.values():
        plan["cuts"] = convolution_cuts(plan.pop("placements"), [layer.kind for layer in layers])
    return {
        "network": name,
        "layers": len(layers),
        **result,
        "plans": facts,
        "work": measure_work(bench, exact, work),
    }


def measure_work(bench: Bench, path: Path, plans: dict[str, Planned]) -> dict[str, Any]:
    """Of each plan: milliseconds of its layers and of its processors' work; what is handed over."""
    if not plans:
        return {}
    work = StageWork(bench.measuring_engine(path), repeats=2 if bench.smoke else 5)
    return {key: work.of(planned) | handed_over(planned) for key, planned in plans.items()}


def run() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--networks", type=_names(NETWORKS), default=NETWORKS)
    parser.add_argument("--variants", type=_names(tuple(VARIANTS)), default=tuple(VARIANTS))
    options, _ = parser.parse_known_args()
    parser = argparse.ArgumentParser(parents=[parser])
    experiments = {
        f"network_{name}": partial(measure_network, name, options.variants)
        for name in options.networks
    }
    return main(experiments, __doc__, budget_s=900, parser=parser)


def _names(known: tuple[str, ...]) -> Any:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(known)}")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(run())
