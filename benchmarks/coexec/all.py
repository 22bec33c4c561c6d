"""Everything in some testbeds, within a budget of seconds.

    python -m benchmarks.coexec.all --testbeds g4c3-avx2 --budget-s 3600
    python -m benchmarks.coexec.all --testbeds g1c1-avx2,g1c1-scalar,g1c1-avx512

The first testbed runs all experiments, each a process with its share of the budget; the others show
one network on other balances of CPU and GPU. Each experiment writes its result as soon as it is
there, and one that fails leaves the others alone. Started again, it goes on with what is missing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.coexec.experiment import add_run_arguments, store_failure
from benchmarks.coexec.testbed import Testbed, run
from benchmarks.coexec.turns import Budget
from benchmarks.command_line import parser_of

PACKAGE: Final = "benchmarks.coexec"
GRACE: Final = 2.0
"""A step that takes longer than this times its share, and a minute, is ended."""
WEIGHTS: Final = {
    "confinement": 0.3,
    "sync": 0.5,
    "prepare_profile": 3,
    "predictors": 0.8,
    "layers": 3,
    "networks": 4,
}
"""Modules and their shares of the budget, in order of need."""
BALANCE: Final = {
    "confinement": 0.3,
    "prepare_profile": 3,
    "networks --only network_yolov2_tiny": 1,
}


def run_steps(
    weights: Mapping[str, float],
    testbed: Testbed,
    budget: Budget,
    folder: Path,
    results: Path,
    smoke: bool,
) -> list[str]:
    """Runs modules one after the other, each with its share of what is left.

    Args:
        weights: by module of this package, with options of its own.
        testbed: where.
        budget: of all of them together.
        folder: of networks and profiles.
        results: the results file.
        smoke: whether only to show that they work.

    Returns:
        Those that failed; the results file says why.
    """
    failed = []
    left = sum(weights.values())
    for step, weight in weights.items():
        share_s = budget.left_s * weight / left
        left -= weight
        print(f"-- {testbed.name}: {step}, {share_s:.0f} s", flush=True)
        module, *own = step.split()
        command = [sys.executable, "-m", f"{PACKAGE}.{module}", *own]
        command += [f"--testbed={testbed.name}", f"--budget-s={share_s:.0f}"]
        command += [f"--folder={folder}", f"--json={results}", *(["--smoke"] if smoke else [])]
        code = _run(command, GRACE * share_s + 60)
        if code:
            failed.append(f"{module} on {testbed.name}")
        if code < 0:  # others have told the file why
            store_failure(results, testbed.name, module, f"signal {-code}")
    return failed


def _run(command: Sequence[str], limit_s: float) -> int:
    """The exit code of a command, which is ended with all that it started when time is over."""
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()


def main() -> int:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--testbeds", default="g1c1-avx2", help="names with commas between")
    add_run_arguments(parser, budget_s=1800)
    options = parser.parse_args()
    testbeds = [Testbed.named(name) for name in options.testbeds.split(",")]
    budget = Budget(options.budget_s)
    failed = []
    for number, testbed in enumerate(testbeds):
        share = budget.share(len(testbeds) - number)
        weights = BALANCE if number else WEIGHTS
        folder, results = options.folder, options.json
        failed += run_steps(weights, testbed, share, folder, results, options.smoke)
    if failed:
        print(f"failed: {', '.join(failed)}; {options.json} has the reasons", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    run(main)
