"""Runs a network on both processors while something fails, and prints what came of it, as JSON.

Usage: failure_worker.py FILE: PHONEBIT_KERNELS names a folder whose polling kernel tells nothing.
failure_worker.py FILE LIBRARY: that OpenCL library, which PHONEBIT_OPENCL_LIBRARY names, too, stops
launching kernels after the first pass.
"""

from __future__ import annotations

import ctypes
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from random_plans import whole_plan

from phonebit import Network
from phonebit.format.reader import read_contents
from phonebit.opencl import opencl_runtime
from phonebit.planner import ExecutionPlan, Processor


def both_by_turns(path: str) -> ExecutionPlan:
    """Odd layers on the GPU, even ones on the CPU: they wait for each other all the time."""
    plan = whole_plan(read_contents(path), Processor.GPU)
    parts = [
        type(planned)(planned.layer, Processor(planned.layer % 2), planned.layer, planned.part)
        for planned in plan.parts
    ]
    return ExecutionPlan("test", "user", 0.0, tuple(parts))


def main(path: str, library: str = "") -> None:
    """Prints ``{"equal": [bool of each pass], "warnings": [...], "coexec": {...}}``."""
    alone = Network.load(path, device="cpu")
    shape = alone.inputs[0].shape
    x = np.random.default_rng(0).integers(0, 256, (1, *shape)).astype(np.uint8)
    expected = alone.forward(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network = opencl_runtime().Network(
            path,
            device="gpu+cpu",
            threads=1,
            plan=both_by_turns(path).as_tuple(),
            sync_limit_ms=200,
        )
        pair = Network(network, Path(path))
        equal = [bool(np.array_equal(pair.forward(x), expected))]
        if library:
            ctypes.CDLL(library).fail_after(2)
        equal += [bool(np.array_equal(pair.forward(x), expected)) for _ in range(3)]
    notes = [*network.warnings, *(str(warning.message) for warning in caught)]
    print(json.dumps({"equal": equal, "warnings": notes, "coexec": network.coexec}))


if __name__ == "__main__":
    main(*sys.argv[1:])
