"""What all experiments have in common: options, the testbed, devices, the results file."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.coexec import results_file
from benchmarks.coexec.quiet_probe import QuietProbe
from benchmarks.coexec.testbed import (
    Testbed,
    TestbedError,
    add_arguments,
    from_options,
    pocl_device,
)
from benchmarks.coexec.turns import Budget
from benchmarks.records import RESULTS
from phonebit import Network
from phonebit.devices.loading import EngineOptions
from phonebit.planner.measure.engines import open_measuring_engine, open_probe

if TYPE_CHECKING:
    from phonebit import _runtime

FILE: Final = RESULTS / "coexec.json"
FOLDER: Final = Path(tempfile.gettempdir()) / "phonebit-coexec"


@dataclass(frozen=True)
class Bench:
    """What an experiment runs on.

    Attributes:
        testbed: the division of the machine.
        gpu: device name of the GPU, such as "gpu:0".
        folder: where networks, samples and profiles are kept from one experiment to the next.
        budget: seconds that the experiment may take.
        smoke: whether only to show that everything works.
    """

    testbed: Testbed
    gpu: str
    folder: Path
    budget: Budget
    smoke: bool

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
        """Folder of network files, for all testbeds."""
        return networks_folder(self.folder)

    @property
    def profile(self) -> Path:
        """The device profile that prepare_profile.py makes."""
        return profile_path(self.folder, self.testbed)

    def load(self, path: Path, **options: Any) -> Network:
        """A network on both processors; ``options`` are those of ``Network.load``."""
        return Network.load(path, device=self.both, threads=self.testbed.cpu_cores, **options)

    def measuring_engine(
        self, path: Path, threads: int | None = None, **options: Any
    ) -> _runtime.Network:
        """What measures single layers of a network on both processors.

        Args:
            path: the network.
            threads: of the CPU; None: one on each of its cores.
            options: of ``Network.load``: sharing, synchronization.
        """
        threads = self.testbed.cpu_cores if threads is None else threads
        return open_measuring_engine(path, self.both, EngineOptions(threads, **options))

    def canary(self) -> QuietProbe:
        """Tells whether all of the testbed's cores are undisturbed."""
        return QuietProbe(*open_probe(self.both, EngineOptions(self.testbed.cpu_cores)))


SEED: Final = 1
"""Of all that is drawn."""

Experiment = Callable[[Bench], dict[str, Any]]


def networks_folder(folder: Path) -> Path:
    """Where network files are, for all testbeds; it is made."""
    path = folder / "networks"
    path.mkdir(parents=True, exist_ok=True)
    return path


def profile_path(folder: Path, testbed: Testbed) -> Path:
    """Where the device profile of a testbed is."""
    return folder / testbed.name / "profile.json"


def add_run_arguments(parser: argparse.ArgumentParser, budget_s: float) -> None:
    """The options of one experiment or of several."""
    parser.add_argument("--budget-s", type=float, default=budget_s, help="seconds it may take")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="networks, profiles")
    parser.add_argument("-o", "--json", type=Path, default=FILE, help="results file, added to")
    parser.add_argument("--smoke", action="store_true", help="the least that shows that it works")


def main(
    experiments: Mapping[str, Experiment],
    description: str | None,
    budget_s: float = 300,
    parser: argparse.ArgumentParser | None = None,
) -> int:
    """Command line of a script of experiments, which share its budget.

    Args:
        experiments: by key of the result.
        description: the module's.
        budget_s: seconds, unless the user says otherwise.
        parser: with further options, which the script reads itself.

    Returns:
        Exit code: 1 if one failed; the reason is in the results file, too.
    """
    parser = parser or argparse.ArgumentParser()
    parser.description = description
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_arguments(parser)
    add_run_arguments(parser, budget_s)
    parser.add_argument("--again", action="store_true", help="even if the result is there")
    options = parser.parse_args()
    testbed = from_options(options)
    open_ones = [
        name
        for name in experiments
        if options.again or results_file.stored(options.json, testbed.name, name) is None
    ]
    for name in experiments.keys() - set(open_ones):
        print(f"{name} on {testbed.name}: already in {options.json}")
    if not open_ones:
        return 0
    testbed.enter()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    budget = Budget(options.budget_s)
    failed = False
    for number, name in enumerate(open_ones):
        own = budget.share(len(open_ones) - number)
        try:
            bench = Bench(testbed, pocl_device(), folder, own, options.smoke)
            result = experiments[name](bench)
        except Exception as error:  # whatever it is, the other experiments go on
            if not isinstance(error, TestbedError):
                traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            print(f"{name} on {testbed.name}: {reason}", file=sys.stderr)
            results_file.store_failure(options.json, testbed.name, name, reason)
            failed = True
            continue
        used = {"used_s": round(own.used_s, 1), "smoke": options.smoke}
        results_file.store(options.json, testbed.name, name, used | result, bench.gpu)
        print(f"{name} on {testbed.name}: {own.used_s:.0f} s")
    return int(failed)
