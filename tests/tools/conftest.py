"""The native programs: PHONEBIT_TOOLS names their folder, or a plain CMake build made them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from native_program import ROOT, Program

FOLDER_VARIABLE = "PHONEBIT_TOOLS"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Program]:
    """Finds a program by name; skips where the programs are not built."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or ROOT / "build" / "runtime" / "tools")
    cache = tmp_path_factory.mktemp("cache")

    def find(name: str) -> Program:
        path = folder / name
        if not path.is_file():
            pytest.skip(f"{path} is not built ({FOLDER_VARIABLE} names the folder)")
        return Program(path, {**os.environ, "PHONEBIT_CACHE_DIR": str(cache)})

    return find


@pytest.fixture(scope="session")
def bench(program: Callable[[str], Program]) -> Program:
    """phonebit_bench."""
    return program("phonebit_bench")


@pytest.fixture(scope="session")
def run(program: Callable[[str], Program]) -> Program:
    """phonebit_run."""
    return program("phonebit_run")


@pytest.fixture(scope="session")
def opencl(bench: Program) -> None:
    """Skips where these programs see no OpenCL device."""
    found = bench("--devices", "--json").document
    if not found["opencl"]:
        pytest.skip(f"no OpenCL device: {found['opencl_error']}")
