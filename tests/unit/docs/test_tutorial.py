"""docs/tutorial.md, block by block from its first to its last, in one folder."""

from __future__ import annotations

import os
import platform
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from phonebit.cli.main import app
from support.android_phones import PROPERTIES, FakePhones

pytestmark = pytest.mark.torch
pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r'^```(\w+)(?: title="([^"]+)")?( skip="[^"]+")?\n(.*?)^```$', re.DOTALL | re.MULTILINE
)
ON_THE_HOST, NATIVE = PAGE.split("\n## 7. ")
LIBRARY = os.environ.get("PHONEBIT_LIBRARY")
ABIS = {"x86_64": "x86_64", "aarch64": "arm64-v8a"}


def run(text: str) -> str:
    """Runs the blocks of a part of the page; gives what its commands print."""
    printed = ""
    names: dict[str, Any] = {}
    for language, title, skip, content in BLOCK.findall(text):
        if title:
            Path(title).write_text(content.replace("STEPS = 2000", "STEPS = 10"))
        elif language == "sh" and not skip:
            printed += "".join(map(command, content.splitlines()))
        elif language == "python":
            exec(compile(content, "tutorial.md", "exec"), names)
    return printed


def command(line: str) -> str:
    program, *arguments = shlex.split(line)
    if program == "phonebit":
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{line}: {result.output}"
        return result.output
    if line == "python train.py":
        runpy.run_path("train.py")  # in this process, which has loaded PyTorch
        return ""
    return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first six chapters have run."""
    folder = tmp_path_factory.mktemp("checkout") / "tutorial"
    folder.mkdir()
    assert PAGE.count("STEPS = 2000\n") == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        printed = run(ON_THE_HOST)
    assert "97.3% of 2.1 MMAC are binary" in printed
    assert "passed: garments.pbit computes what garments.pt2 does" in printed
    return folder


def test_from_training_to_python(folder: Path) -> None:
    assert "<svg" in (folder / "profile.html").read_text()


def test_on_to_cpp_and_a_phone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LIBRARY:
        pytest.skip("PHONEBIT_LIBRARY names no library")
    (folder / "installed").mkdir()
    (folder / "installed" / "include").symlink_to(ROOT / "runtime" / "include")
    (folder / "installed" / "lib").symlink_to(Path(LIBRARY).parent)
    build = folder.parent / "build" / "android-arm64-v8a" / "runtime"
    build.mkdir(parents=True)
    (build / "tools").symlink_to(Path(os.environ["PHONEBIT_TOOLS"]))
    phones = FakePhones(folder)
    abi = ABIS[platform.machine()]
    phones.attach("HOST", properties={**PROPERTIES, "ro.product.cpu.abilist": abi})
    programs = (str(phones.adb.parent), str(Path(sys.executable).parent), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(programs))
    monkeypatch.chdir(folder)
    printed = run(NATIVE)
    assert printed.splitlines()[0] in (folder / "labels.txt").read_text().split()
    assert "conv2" in printed
