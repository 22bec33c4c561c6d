"""docs/faq.md: its messages are those that a user gets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import phonebit
from phonebit.cli.main import app
from phonebit.models.trained import trained_file
from support.page_files import write_page_files

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(
    r'^### ([^\n]+)\n[^#]*?^```(console|pycon)(?: (without|needs)="torch")?\n(.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
CASES = [
    pytest.param(
        language,
        torch,
        text,
        id=title,
        marks=[pytest.mark.torch] if torch == "needs" else [],
    )
    for title, language, torch, text in BLOCK.findall((ROOT / "docs" / "faq.md").read_text("utf-8"))
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faq")
    write_page_files(folder)
    shutil.copy(trained_file("fashion-larq"), folder / "model.pbit")
    phonebit.convert(folder / "model.h5", folder / "plain.pbit")
    (folder / "net.pt2").touch()
    return folder


def write_torch_files() -> None:
    """sign.pt2 and weights.pth of a small network, and training.pt2 of it in training mode."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(1, 32, 3)
            self.norm = torch.nn.BatchNorm2d(32)
            self.second = torch.nn.Conv2d(32, 32, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = torch.where(self.second.weight >= 0, 1.0, -1.0)
            return torch.nn.functional.conv2d(torch.sign(self.norm(self.first(x))), weight)

    x = torch.randn(1, 1, 8, 8)
    net = Net()
    torch.save(net.state_dict(), "weights.pth")
    torch.export.save(torch.export.export(net, (x,)), "training.pt2")
    torch.export.save(torch.export.export(net.eval(), (x,)), "sign.pt2")


def printed(command: str) -> str:
    if command.startswith("phonebit "):
        return CliRunner().invoke(app, command.split()[1:]).output
    folder = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "PATH": folder}
    )
    return done.stderr + done.stdout


def raised(expression: str) -> str:
    network = phonebit.Network.load("plain.pbit", device="cpu")
    with pytest.raises(phonebit.PhoneBitError) as caught:
        eval(expression, {"network": network, "np": np})
    return f"{type(caught.value).__name__}: {caught.value}"


def test_sections_are_found() -> None:
    assert len(CASES) == 10


@pytest.mark.parametrize(("language", "torch", "text"), CASES)
def test_the_message_is_real(
    language: str, torch: str, text: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    if torch == "needs":
        pytest.importorskip("torch")
        if not (files / "sign.pt2").exists():
            write_torch_files()
    elif torch == "without":
        monkeypatch.setitem(sys.modules, "torch", None)
    prompt = "$ " if language == "console" else ">>> "
    for part in text.split(prompt)[1:]:
        command, _, message = part.partition("\n")
        got = printed(command) if language == "console" else raised(command)
        pieces = [re.escape(" ".join(piece.split())) for piece in message.split("...")]
        assert re.search(".*".join(pieces), " ".join(got.split())), got
