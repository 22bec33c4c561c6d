"""The experiments as commands: what to run in which testbed, and for how long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.coexec import results_file
from benchmarks.coexec.testbed import Testbed
from benchmarks.coexec.turns import Budget

PACKAGE: Final = "benchmarks.coexec"
GRACE: Final = 2.0
"""A step that takes longer than this times its share, and a minute, is ended."""


@dataclass(frozen=True)
class Step:
    """A module of this package.

    Attributes:
        script: its name.
        weight: share of the budget, relative to the other steps.
        options: of its own.
        smoke_options: in place of them, to show that it works.
    """

    script: str
    weight: float
    options: tuple[str, ...] = ()
    smoke_options: tuple[str, ...] = ()


WARM_UP: Final = Step("warm_up", 1)
PREPARE: Final = Step("prepare_profile", 3)
ALL: Final = (
    WARM_UP,
    Step("confinement", 0.3),
    Step("sync", 0.5),
    PREPARE,
    Step("predictors", 0.8),
    Step("layers", 3),
    Step("networks", 4, smoke_options=("--networks=birealnet18",)),
)
"""In order of need: whatever fails or is cut off, the others have their results."""


def run_steps(
    steps: Sequence[Step],
    testbed: Testbed,
    budget: Budget,
    folder: Path,
    results: Path,
    smoke: bool,
) -> list[str]:
    """Runs steps one after the other, each with its share of what is left.

    Args:
        steps: which.
        testbed: where.
        budget: of all of them together.
        folder: of networks and profiles.
        results: the results file.
        smoke: whether only to show that they work.

    Returns:
        The scripts that failed; the results file says why.
    """
    failed = []
    for number, step in enumerate(steps):
        weights = sum(later.weight for later in steps[number:])
        share_s = budget.left_s * step.weight / weights
        print(f"-- {testbed.name}: {step.script}, {share_s:.0f} s", flush=True)
        command = [
            sys.executable,
            "-m",
            f"{PACKAGE}.{step.script}",
            *testbed.options(),
            f"--budget-s={share_s:.0f}",
            f"--folder={folder}",
            f"--json={results}",
            *(("--smoke", *step.smoke_options) if smoke else step.options),
        ]
        code = _run(command, GRACE * share_s + 60)
        if code:
            failed.append(step.script)
        if code < 0:  # others have told the file why
            results_file.store_failure(results, testbed.name, step.script, f"signal {-code}")
    return failed


def _run(command: Sequence[str], limit_s: float) -> int:
    """The exit code of a command, which is ended with all that it started when time is over."""
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()
