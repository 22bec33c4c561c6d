"""Runs a network on both processors while something fails, and prints what came of it, as JSON.

Usage: failure_worker.py FILE: PHONEBIT_KERNELS names a folder whose polling kernel tells nothing;
the processors are told to poll, as they do by themselves on a GPU.
failure_worker.py FILE LIBRARY LAUNCHES: that OpenCL library, which PHONEBIT_OPENCL_LIBRARY names,
too, launches so many kernels after the first inference, and no others. With "tried" after it the
plan is the file's own, which is compared in auto-selection.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from phonebit import Network
from phonebit.devices.gpus import gpu_runtime
from phonebit.devices.loading import EngineOptions
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner import ExecutionPlan, Processor, with_plan
from support.random_plans import whole_plan

if TYPE_CHECKING:
    from phonebit import _runtime

PASSES: Final = 3
SELECTION_LIMIT_S: Final = 60
"""More than the auto-selection of a tiny network takes."""


def both_by_turns(path: str) -> ExecutionPlan:
    """Odd layers on the GPU, even ones on the CPU: they wait for each other all the time."""
    plan = whole_plan(read_contents(path), Processor.GPU)
    parts = [
        type(planned)(planned.layer, Processor(planned.layer % 2), planned.layer, planned.part)
        for planned in plan.parts
    ]
    return ExecutionPlan("test", "user", 0.0, tuple(parts))


def planned_network(path: str, polls: bool, is_tried: bool) -> _runtime.Network:
    """The network on both, whose plan is given, or in its file, which is written again."""
    load = partial(
        gpu_runtime().Network,
        path,
        device="gpu+cpu",
        threads=1,
        synchronization="polling" if polls else "auto",
        sync_limit_ms=200,
    )
    plan = both_by_turns(path)
    if not is_tried:
        return load(plan=plan.as_tuple())
    # A file that nobody has tried before.
    predicted_ms = float(np.random.default_rng().integers(1, 1 << 20))
    plan = replace(plan, device=load().plan_key, predicted_ms=predicted_ms)
    Path(path).write_bytes(file_bytes(with_plan(read_contents(path), plan)))
    return load()


def main(path: str, library: str = "", launches: str = "", tried: str = "") -> None:
    """Prints ``{"equal": [bool of each inference], "warnings": [...], "coexec": {...}}``."""
    alone = Network.load(path, device="cpu")
    shape = alone.inputs[0].shape
    x = np.random.default_rng(0).integers(0, 256, (1, *shape)).astype(np.uint8)
    expected = alone.forward(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network = planned_network(path, polls=not library, is_tried=tried == "tried")
        assert network.coexec["is_on_trial"] == bool(tried)
        pair = Network(network, Path(path), "gpu+cpu", EngineOptions())
        equal = [bool(np.array_equal(pair.forward(x), expected))]
        if library:
            ctypes.CDLL(library).fail_after(int(launches))
        end = time.monotonic() + SELECTION_LIMIT_S
        while len(equal) <= PASSES or (network.coexec["is_on_trial"] and time.monotonic() < end):
            equal.append(bool(np.array_equal(pair.forward(x), expected)))
    notes = [*network.warnings, *(str(warning.message) for warning in caught)]
    print(json.dumps({"equal": equal, "warnings": notes, "coexec": network.coexec}))


if __name__ == "__main__":
    main(*sys.argv[1:])
