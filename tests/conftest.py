"""Shared by all tests: hypothesis draws the same examples every time; driver faults are listed."""

from __future__ import annotations

import gc
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from phonebit.devices.gpus import gpu_devices, gpu_error
from phonebit.planner.measure import engines, in_network, measuring
from support.opencl_device import FAULT, UNOPTIMIZED
from support.opencl_library import mapping_library, take_mapping_faults, use_mapping_library

settings.register_profile("phonebit", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("phonebit")

# PoCL's optimiser takes longer than most programs of these tests run. Subprocesses have it, too.
if not os.environ.get("PHONEBIT_TEST_OPTIMIZED"):
    os.environ.update(UNOPTIMIZED)

# For tests of benchmarks and recipes. Last, since the root's phonebit/ is not the installed one.
sys.path.append(str(Path(__file__).parents[1]))


def pytest_configure(config: pytest.Config) -> None:
    """Before anything loads OpenCL. Workers of pytest-xdist inherit the choice."""
    if not hasattr(config, "workerinput"):
        kept = getattr(config, "cache", None)  # not with "-p no:cacheprovider"
        use_mapping_library(kept.mkdir("opencl") if kept else Path(tempfile.mkdtemp()))
    mapping_library()


def pytest_report_header() -> str:
    return f"OpenCL mappings: {'the driver' if mapping_library() is None else 'tests'}'s own memory"


@pytest.fixture(autouse=True)
def shared_memory_by_the_rules() -> Iterator[None]:
    """A test fails that used memory in a way that OpenCL leaves undefined."""
    yield
    faults = take_mapping_faults()
    assert not faults, "undefined in OpenCL (tests/support/mapping_opencl.cpp):\n" + "\n".join(
        faults
    )


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One cache folder for pytest's workers, so that kernels are built and tested once.

    No test finds what a user has tuned, or tunes for others (``cache_folder`` is for those).
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "kernels"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHONEBIT_CACHE_DIR", str(folder))
        yield str(folder)


@pytest.fixture
def hasty_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning measures once, and not again because other tests disturb it.

    For tests of a plan that runs, whether it is good or not.
    """
    monkeypatch.setattr(engines, "TURNS", 1)
    monkeypatch.setattr(measuring, "REPEATS", 1)
    monkeypatch.setattr(measuring, "QUIET_LIMIT_S", 0)
    monkeypatch.setattr(in_network, "MAX_SLOWNESS", math.inf)


def pytest_collection_finish() -> None:
    """What is loaded stays: the garbage collector, which PyTorch's exports call often, skips it."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests of OpenCL were skipped: each fault of the driver, or that there is no device."""
    if not gpu_devices():
        terminalreporter.section("tests of OpenCL skipped")
        terminalreporter.write_line(gpu_error())
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    faults = [reason.removeprefix("Skipped: ") for reason in reasons if FAULT in reason]
    if faults:
        terminalreporter.section(f"{len(faults)} tests skipped for {FAULT}")
        terminalreporter.write_line("\n".join(sorted(set(faults))))
