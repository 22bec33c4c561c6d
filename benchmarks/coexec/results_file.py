"""The results file: experiments by testbed, each written as soon as it is there.

{"context": {...}, "testbeds": {"g1c1-avx2": {"sync": {...}, "networks": {...}, "failures": {}}}}
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from benchmarks.records import Document, write_results
from benchmarks.run_context import run_context

FAILURES: Final = "failures"


def context(device: str = "cpu") -> Document:
    """Date, machine and commit; the machine's cores, not those that a testbed leaves."""
    return run_context(device) | {"cores": os.cpu_count()}


def read(path: Path) -> Document:
    """What a results file holds; without experiments where there is none yet."""
    if not path.is_file():
        return {"context": context(), "testbeds": {}}
    document: Document = json.loads(path.read_text())
    return document


def stored(path: Path, testbed: str, experiment: str) -> Document | None:
    """The result of an experiment, if it is there."""
    found: Document | None = read(path)["testbeds"].get(testbed, {}).get(experiment)
    return found


def store(path: Path, testbed: str, experiment: str, result: Document, device: str = "cpu") -> None:
    """Writes a result, with date, machine, driver and commit; older ones and failures go."""
    document = read(path)
    results = document["testbeds"].setdefault(testbed, {FAILURES: {}})
    results[experiment] = {"context": context(device), **result}
    results[FAILURES].pop(experiment, None)
    write_results(path, document)


def store_failure(path: Path, testbed: str, experiment: str, reason: str) -> None:
    """Notes why there is no result."""
    document = read(path)
    results = document["testbeds"].setdefault(testbed, {FAILURES: {}})
    results[FAILURES][experiment] = reason
    write_results(path, document)
