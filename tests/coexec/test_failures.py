"""What fails while both processors work costs no result: the network goes on, and says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phonebit import bnn_kernels
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_devices
from support.golden import golden_graph
from support.opencl_device import pyopencl_device
from support.opencl_library import build_library, compiler

HERE = Path(__file__).parent


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pyopencl_device()
    path = tmp_path / "tiny_classifier.pbit"
    path.write_bytes(to_bytes(golden_graph("tiny_classifier"), {}))
    return path


def run_worker(model: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    # Not an empty entry, which would be the folder that the tests run in.
    paths = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-P", HERE / "failure_worker.py", model, *arguments],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def test_a_synchronization_that_never_happens_ends_polling(model: Path, tmp_path: Path) -> None:
    if not gpu_devices()[0].capabilities["svm_atomics"]:
        pytest.skip("the device has no shared virtual memory with atomics")
    kernels = tmp_path / "bnn_kernels"
    shutil.copytree(Path(bnn_kernels.__file__).parent, kernels)
    polling = kernels / "coexec" / "poll_flags.cl"
    text = polling.read_text()
    silent = text.replace(
        "atomic_store_explicit(&flags[GPU], reached", "atomic_store_explicit(&flags[GPU], 0"
    )
    assert silent != text
    polling.write_text(silent)
    result = run_worker(model, PHONEBIT_KERNELS=str(kernels))
    assert result["equal"] == [True] * 4
    assert result["coexec"]["synchronization"] == "events"
    assert not result["coexec"]["is_on_cpu_alone"]
    assert any("waited more than 200 ms" in note for note in result["warnings"])


@pytest.fixture(scope="module")
def failing_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An OpenCL library that stops launching kernels when it is told to."""
    if compiler() is None:
        pytest.skip("no C++ compiler for the library that fails")
    pyopencl_device()
    library = tmp_path_factory.mktemp("library") / "libfailing_opencl.so"
    build_library(HERE / "failing_opencl.cpp", library)
    return library


def test_a_device_that_is_lost_leaves_the_cpu(model: Path, failing_library: Path) -> None:
    library = str(failing_library)
    result = run_worker(model, library, "2", PHONEBIT_OPENCL_LIBRARY=library)
    assert result["equal"] == [True] * 4
    assert result["coexec"]["is_on_cpu_alone"]
    assert any("the CPU does everything from now on" in note for note in result["warnings"])


@pytest.mark.parametrize("launches", [0, 7, 60, 200, 300])
def test_a_device_that_is_lost_in_auto_selection_costs_no_result(
    model: Path, failing_library: Path, launches: int
) -> None:
    library = str(failing_library)
    result = run_worker(model, library, str(launches), "tried", PHONEBIT_OPENCL_LIBRARY=library)
    assert all(result["equal"])
    assert not result["coexec"]["is_on_trial"]


FAILS_ONCE = """
import ctypes, sys
import numpy as np
from phonebit import DeviceError, Network
from phonebit.devices.gpus import gpu_runtime
path, library = sys.argv[1:]
alone = Network.load(path, device="cpu")
x = np.zeros((1, *alone.inputs[0].shape), np.uint8)
fail_after = ctypes.CDLL(library).fail_after
fail_after(0)
try:
    gpu_runtime().Network(path, device="gpu")
except DeviceError as error:
    print(error)
fail_after(-1)
network = gpu_runtime().Network(path, device="gpu")
assert np.array_equal(network.forward([x])[0].ravel(), alone.forward(x).ravel())
print(network.warnings)
"""


def test_a_device_that_fails_during_self_tests_is_tested_again(
    model: Path, failing_library: Path, tmp_path: Path
) -> None:
    environment = {
        "PHONEBIT_OPENCL_LIBRARY": str(failing_library),
        "PHONEBIT_CACHE_DIR": str(tmp_path / "cache"),
    }
    ran = subprocess.run(
        [sys.executable, "-P", "-c", FAILS_ONCE, model, failing_library],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert "CL_DEVICE_NOT_AVAILABLE" in first
    assert second == "[]"
