"""What a benchmark's JSON says of the machine it ran on."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any


def cpu_model() -> str:
    """The processor's name as the kernel reports it, or the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def commit() -> str:
    """The checked-out commit, with a mark if the tree has changes.

    Empty outside a checkout, and where git is not installed.
    """
    here = Path(__file__).parent
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def run_context() -> dict[str, Any]:
    """Date, machine and versions for a results file."""
    import phonebit

    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "phonebit": phonebit.__version__,
        "commit": commit(),
    }
