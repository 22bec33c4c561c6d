"""Whichever file operation fails, convert, plan and tune report it and leave files whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from phonebit.converter.writer import to_bytes
from phonebit.format.writer import file_bytes
from phonebit.planner.predict.profile import write_profile
from support.golden import golden_graph
from support.made_up_profile import made_up_profile
from support.opencl_device import pyopencl_device
from support.planner_times import straight

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "converter" / "fixtures"


@pytest.fixture(scope="module")
def failing_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library to preload, whose file operations fail when they are told to."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler for the library that fails, or no Linux")
    library = tmp_path_factory.mktemp("library") / "libfailing_files.so"
    command = [compiler, "-shared", "-fPIC", "-o", library, HERE / "failing_files.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


def fail_each(
    library: Path, folders: list[Path], output: Path, old: Path, *command: object
) -> None:
    """Every operation on files in the folders fails once while the command runs."""
    paths = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [
            *(sys.executable, "-P", HERE / "file_faults_worker.py", output, old),
            *(str(word) for word in command),
        ],
        env=os.environ
        | {
            "LD_PRELOAD": str(library),
            "PHONEBIT_FAILING_FOLDERS": os.pathsep.join(map(str, folders)),
            "PYTHONPATH": paths,
            "PHONEBIT_CACHE_DIR": str(output.parent.parent / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["problems"] == []
    assert result["operations"] >= 6  # open and read, then open, write, put on the disk, rename


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For what a command reads and writes."""
    path = tmp_path / "files"
    path.mkdir()
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An output of an earlier run."""
    path = tmp_path / "old.pbit"
    path.write_bytes(to_bytes(golden_graph("tiny_classifier")))
    return path


@pytest.mark.parametrize(
    "name", [pytest.param("dense_layers.h5", marks=pytest.mark.slow), "keras3_plain.keras"]
)
def test_convert(failing_files: Path, folder: Path, old: Path, name: str) -> None:
    source = shutil.copy(FIXTURES / name, folder)
    output = folder / "out.pbit"
    fail_each(failing_files, [folder], output, old, "convert", source, "-o", output)


def test_plan(failing_files: Path, folder: Path, old: Path) -> None:
    model, profile, output = folder / "in.pbit", folder / "profile.json", folder / "out.pbit"
    model.write_bytes(file_bytes(straight(3)))
    write_profile(profile, made_up_profile())
    command = ("plan", model, "--cost-model", profile, "-o", output, "--method", "ulayer")
    fail_each(failing_files, [folder], output, old, *command)


def test_tune(failing_files: Path, folder: Path, tmp_path: Path) -> None:
    pyopencl_device()
    model, output, old = folder / "in.pbit", folder / "out.table", tmp_path / "old.table"
    model.write_bytes(to_bytes(golden_graph("binary_conv_threshold_64_64_pad0")))
    old.write_text("# of an earlier run\n")
    tuning = tmp_path / "cache" / "tuning"
    command = ("tune", model, "--export", output)
    fail_each(failing_files, [folder, tuning], output, old, *command)
