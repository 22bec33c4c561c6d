"""Which OpenCL loader the runtime is told to use: that of pyopencl, without importing it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from phonebit.devices.gpus import gpu_runtime, pyopencl_library


class FakeRuntime:
    """The part of the compiled module that is told about the library."""

    def __init__(self) -> None:
        self.libraries: list[str] = []

    def use_opencl_library(self, path: str) -> None:
        self.libraries.append(path)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime()
    monkeypatch.setattr("phonebit.devices.gpus.load_runtime", lambda: fake)
    monkeypatch.delenv("PHONEBIT_OPENCL_LIBRARY", raising=False)
    return fake


def folder_with(tmp_path: Path, *names: str) -> Path:
    for name in ("pyopencl/__init__.py", *names):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.fixture
def without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyopencl"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("PYOPENCL_HOME", "")
    monkeypatch.delenv("PYOPENCL_HOME")


@pytest.mark.parametrize(
    "library", ["pyopencl/.libs/libOpenCL-55.so.1.0.0", "pyopencl.libs/libOpenCL-1.so"]
)
def test_the_wheels_loader_is_found_without_importing_pyopencl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pyopencl: None, library: str
) -> None:
    monkeypatch.syspath_prepend(folder_with(tmp_path, library))
    assert pyopencl_library() == tmp_path / library
    assert "pyopencl" not in sys.modules


def test_the_wheels_loader_is_told_where_its_drivers_are(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pyopencl: None
) -> None:
    folder = folder_with(tmp_path, "pyopencl/.libs/libOpenCL-55.so.1", "pyopencl/.libs/pocl.icd")
    (folder / "pyopencl/.libs/pocl.icd").write_text("libpocl-is-missing.so\n")
    monkeypatch.syspath_prepend(folder)
    gpu_runtime()
    assert runtime.libraries == [str(folder / "pyopencl/.libs/libOpenCL-55.so.1")]
    assert os.environ["PYOPENCL_HOME"] == str(folder / "pyopencl")


def test_the_wheels_loader_gets_its_variable_where_the_wheel_has_no_drivers(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pyopencl: None
) -> None:
    """The loader of pyopencl's wheel crashes without it (seen with 2026.1.4)."""
    folder = folder_with(tmp_path, "pyopencl/.libs/libOpenCL-55.so.1")
    monkeypatch.syspath_prepend(folder)
    gpu_runtime()
    assert os.environ["PYOPENCL_HOME"] == str(folder / "pyopencl")


def test_a_pyopencl_without_a_loader_leaves_it_to_the_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pyopencl: None
) -> None:
    monkeypatch.syspath_prepend(folder_with(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert pyopencl_library() is None
    conda = folder_with(tmp_path, "lib/libOpenCL.so.1") / "lib" / "libOpenCL.so.1"
    assert pyopencl_library() == (conda if sys.platform == "linux" else None)


def test_the_library_is_chosen_once_and_not_against_the_users_will(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("phonebit.devices.gpus.pyopencl_library", lambda: tmp_path / "libOpenCL.so")
    gpu_runtime()
    gpu_runtime()
    assert runtime.libraries == [str(tmp_path / "libOpenCL.so")]
    other = FakeRuntime()
    monkeypatch.setattr("phonebit.devices.gpus.load_runtime", lambda: other)
    monkeypatch.setenv("PHONEBIT_OPENCL_LIBRARY", "/usr/lib/libOpenCL.so.1")
    gpu_runtime()
    assert other.libraries == []
