"""What all experiments have in common: options, the testbed, devices, the results file.

The results file has the experiments by testbed, each written as soon as it is there:

{"context": {...}, "testbeds": {"g1c1-avx2": {"sync": {...}, "network_vgg16": {...}}}}
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from benchmarks.coexec.testbed import DEFAULT, Testbed, TestbedError, pocl_device
from benchmarks.coexec.turns import Budget, compete
from benchmarks.command_line import parser_of
from benchmarks.records import RESULTS, Record, read_results, run_context, write_results
from phonebit import Network
from phonebit.devices.loading import EngineOptions
from phonebit.network.random_inputs import random_inputs
from phonebit.planner.measure.engines import open_measuring_engine, open_probe
from phonebit.planner.measure.measuring import NoiseProbe
from phonebit.planner.plan.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from phonebit import _runtime

FILE: Final = RESULTS / "coexec.json"
FAILURES: Final = "failures"
FOLDER: Final = Path(tempfile.gettempdir()) / "phonebit-coexec"


@dataclass(frozen=True)
class Bench:
    """What an experiment runs on."""

    testbed: Testbed  # the division of the machine
    gpu: str  # device name, such as "gpu:0"
    folder: Path  # where networks, samples and profiles are kept from one experiment to the next
    budget: Budget  # of the experiment
    smoke: bool  # whether only to show that everything works

    @property
    def cpu(self) -> str:
        """Device name of the CPU."""
        return f"cpu:{self.testbed.isa}"

    @property
    def both(self) -> str:
        """Device name of both together."""
        return f"{self.gpu}+{self.cpu}"

    @property
    def networks(self) -> Path:
        """Folder of network files, for all testbeds; it is made."""
        path = self.folder / "networks"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def profile(self) -> Path:
        """The device profile that prepare_profile.py makes."""
        return self.folder / self.testbed.name / "profile.json"

    @property
    def samples(self) -> Path:
        """What it is trained from."""
        return self.profile.with_name("samples.jsonl")

    def load(self, path: Path, **options: Any) -> Network:
        """A network on both processors; ``options`` are those of ``Network.load``."""
        return Network.load(path, device=self.both, threads=self.testbed.cpu_cores, **options)

    def alone(self, path: Path, **options: Any) -> dict[str, Network]:
        """A network on either processor, as a user would run it there."""
        cpu = Network.load(path, device=self.cpu, threads=self.testbed.cpu_cores, **options)
        return {"cpu": cpu, "gpu": Network.load(path, device=self.gpu, **options)}

    def measuring_engine(
        self, path: Path, plan: ExecutionPlan | None = None, threads: int = 0, **options: Any
    ) -> _runtime.Network:
        """What measures a network's layers, or passes by a plan, on both processors.

        Without ``threads``, the CPU has one per core; ``options`` are those of ``Network.load``.
        """
        options["threads"] = threads or self.testbed.cpu_cores
        return open_measuring_engine(path, self.both, cast(EngineOptions, options), plan)

    def compete(self, networks: Mapping[str, Network], share: float = 1) -> Record:
        """Times networks in turns, undisturbed, for a share of what is left of the budget."""
        image = random_inputs(networks["cpu"].inputs, 1)
        calls = {key: partial(network.forward, image) for key, network in networks.items()}
        probe = NoiseProbe(*open_probe(self.both, EngineOptions(threads=self.testbed.cpu_cores)))
        return compete(calls, probe, Budget(0 if self.smoke else self.budget.left_s * share))


SEED: Final = 1
"""Of all that is drawn."""

Experiment = Callable[[Bench], Record]


def context(device: str = "cpu") -> Record:
    """Date, machine and commit; the machine's cores, not those that a testbed leaves."""
    return run_context(device) | {"cores": os.cpu_count()}


def read(path: Path) -> Record:
    """What a results file holds; without experiments where there is none yet."""
    if not path.is_file():
        return {"context": context(), "testbeds": {}}
    return read_results(path.resolve())


def store(
    path: Path, testbed: str, experiment: str, result: Record | str, device: str = "cpu"
) -> None:
    """Writes a result, with date, machine, driver and commit, or why there is none."""
    document = read(path)
    results = document["testbeds"].setdefault(testbed, {FAILURES: {}})
    results[FAILURES].pop(experiment, None)
    if isinstance(result, str):
        results[FAILURES][experiment] = result
    else:
        results[experiment] = {"context": context(device), **result}
    write_results(path, document)


def main(
    experiments: Mapping[str, Experiment], description: str | None, budget_s: float = 300
) -> int:
    """Command line of a module with experiments, by key of the result, which share its budget.

    The exit code is 1 if one failed; the reason is in the results file, too.
    """
    parser = parser_of(description)
    parser.add_argument("--testbed", default=DEFAULT, help="cores of GPU and CPU, its ISA")
    parser.add_argument("--budget-s", type=float, default=budget_s, help="seconds it may take")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="networks, profiles")
    parser.add_argument("-o", "--json", type=Path, default=FILE, help="results file, added to")
    parser.add_argument("--smoke", action="store_true", help="the least that shows that it works")
    parser.add_argument("--again", action="store_true", help="even if the result is there")
    parser.add_argument("--only", nargs="+", choices=experiments, default=[*experiments])
    options = parser.parse_args()
    testbed = Testbed.named(options.testbed)
    stored = {} if options.again else read(options.json)["testbeds"].get(testbed.name, {})
    for key in options.only:
        if key in stored:
            print(f"{key} on {testbed.name}: already in {options.json}")
    open_ones = [key for key in options.only if key not in stored][: 1 if options.smoke else None]
    if not open_ones:
        return 0
    testbed.enter()
    options.folder.mkdir(parents=True, exist_ok=True)
    budget = Budget(options.budget_s)
    failed = False
    for number, key in enumerate(open_ones):
        share = budget.share(len(open_ones) - number)
        try:
            bench = Bench(testbed, pocl_device(), options.folder, share, options.smoke)
            result = experiments[key](bench)
        except Exception as error:  # whatever it is, the other experiments go on
            if not isinstance(error, TestbedError):
                traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            print(f"{key} on {testbed.name}: {reason}", file=sys.stderr)
            store(options.json, testbed.name, key, reason)
            failed = True
            continue
        used = {"used_s": round(share.used_s, 1), "smoke": options.smoke}
        store(options.json, testbed.name, key, used | result, bench.gpu)
        print(f"{key} on {testbed.name}: {share.used_s:.0f} s")
    return int(failed)
