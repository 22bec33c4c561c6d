"""Code blocks of README and docs: commands and Python run; what is skipped says why."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import phonebit
from phonebit.devices.gpus import gpu_devices
from support.cli_process import Cli, command_line
from support.page_files import write_page_files

ROOT = Path(__file__).parents[3]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in ("tutorial.md", "faq.md")  # which have tests of their own
]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPENCL = "needs an OpenCL device"


class Block(NamedTuple):
    page: str
    number: int
    language: str
    info: str
    text: str

    @property
    def reason(self) -> str:
        """Why it cannot run everywhere; "" if it can."""
        found = re.fullmatch(r' skip="([^"]+)"', self.info)
        return found[1] if found else ""

    @property
    def hindrance(self) -> str:
        """Why it cannot run here."""
        return "" if self.reason == OPENCL and gpu_devices() else self.reason

    def commands(self) -> list[list[str]]:
        lines = [line for line in self.text.splitlines() if line.startswith("phonebit ")]
        return [shlex.split(line, comments=True)[1:] for line in lines]


BLOCKS = [
    Block(page.name, number, *match)
    for page in PAGES
    for number, match in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]
PYTHON = [page.name for page in PAGES if any(
    block.page == page.name and block.language == "python" for block in BLOCKS)]  # fmt: skip


def named(block: Block) -> str:
    return f"{block.page}-{block.number}"


shell = [block for block in BLOCKS if block.language == "sh"]
every_shell_block = pytest.mark.parametrize("block", shell, ids=named)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages speak of."""
    folder = tmp_path_factory.mktemp("files")
    write_page_files(folder)
    preprocessing = next(block for block in BLOCKS if "labels_file" in block.text)
    (folder / "rule.toml").write_text(preprocessing.text)
    rule = phonebit.Preprocessing((-1.0, 1.0))
    phonebit.convert(folder / "model.h5", folder / "model.pbit", preprocessing=rule)
    return folder


@pytest.fixture
def folder(
    files: Path, tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The current folder, with copies of the files; some commands tune."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_what_is_not_run_says_why(block: Block) -> None:
    assert not block.info or block.reason


@every_shell_block
def test_commands_and_their_options_exist(block: Block) -> None:
    for words in block.commands():
        command = command_line()
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {name for parameter in command.params for name in parameter.opts}
        known |= {name for parameter in command.params for name in parameter.secondary_opts}
        assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known


@pytest.mark.usefixtures("hasty_planning")
@every_shell_block
def test_commands_run(block: Block, folder: Path, cli: Cli) -> None:
    if block.hindrance:
        pytest.skip(block.hindrance)
    for words in block.commands():
        done = cli(*words)
        assert done.code == 0, f"phonebit {' '.join(words)}: {done.out}{done.err}"


@pytest.mark.usefixtures("hasty_planning")
@pytest.mark.parametrize("page", PYTHON)
def test_python_runs(page: str, folder: Path) -> None:
    names: dict[str, Any] = {"images": np.zeros((2, 28, 28, 1), np.float32)}
    blocks = [block for block in BLOCKS if (block.page, block.language) == (page, "python")]
    for block in blocks:
        compile(block.text, named(block), "exec")
        if not block.hindrance:
            exec(compile(block.text, named(block), "exec"), names)
    if all(block.hindrance for block in blocks):
        pytest.skip(f"only compiled: {blocks[0].hindrance}")
