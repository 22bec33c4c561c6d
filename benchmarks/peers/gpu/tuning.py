"""``phonebit tune`` for the networks of the comparison, before anything is measured.

A tuner mostly compiles, so all networks are tuned at the same time, each in a cache folder of its
own: kernels that one of them chose do not serve another.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.command_line import phonebit_command

Row = dict[str, Any]


def variables(folder: Path) -> dict[str, str]:
    """Of a process that keeps what it compiles and tunes in ``folder``."""
    return {**os.environ, "PHONEBIT_CACHE_DIR": str(folder)}


def tune_all(models: Mapping[str, Path], work: Path, level: str, seconds: float) -> dict[str, Row]:
    """Tunes every network's .pbit file on the first GPU, for so many seconds.

    What tuners found until then is in cache folders in the work folder: ``tuned_folder``.

    Returns:
        By network: level, seconds, whether the tuner came to its end, and why it failed if so.
    """
    tuners = {}
    for name, model in models.items():
        errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, lives as long
        command = phonebit_command("tune", str(model), "--json", "--level", level)
        environment = variables(tuned_folder(work, name))
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        tuners[name] = process, errors
    begin = time.monotonic()
    rows: dict[str, Row] = {}
    for name, (tuner, errors) in tuners.items():
        row: Row = {"level": level, "limit_s": seconds}
        try:
            code = tuner.wait(max(0.0, begin + seconds - time.monotonic()))
            row["complete"] = code == 0
            if code:
                errors.seek(0)
                row["failure"] = errors.read().strip()[-300:]
        except subprocess.TimeoutExpired:
            tuner.kill()
            tuner.wait()
            row["complete"] = False
        errors.close()
        rows[name] = row
    return rows


def tuned_folder(work: Path, network: str) -> Path:
    """The cache folder of a network that was tuned."""
    return work / f"tuned_{network}"
