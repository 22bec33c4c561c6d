"""``phonebit verify`` with PyTorch sources: programs, checkpoints, live modules, sign(0)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cli_process import Cli

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from phonebit.converter.convert import convert_graph  # noqa: E402
from phonebit.converter.importers.torch.importer import import_torch  # noqa: E402
from phonebit.converter.ops import BinaryConv2D  # noqa: E402
from phonebit.converter.reader import read_graph  # noqa: E402
from phonebit.converter.writer import to_bytes  # noqa: E402
from phonebit.verification import verify  # noqa: E402

FACTORY = """
import torch

class BinaryConv(torch.nn.Conv2d):
    def forward(self, x):
        return torch.nn.functional.conv2d(torch.sign(x), torch.sign(self.weight), padding=1)

def make():
    torch.manual_seed(4)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, bias=False),
        torch.nn.BatchNorm2d(32),
        BinaryConv(32, 32, 3),
        torch.nn.BatchNorm2d(32),
        BinaryConv(32, 32, 3),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 5),
    )
    torch.nn.init.normal_(net[1].bias)
    torch.nn.init.normal_(net[3].bias)
    return net.eval()
"""
SHAPE = (1, 3, 12, 10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a factory, its network as program and checkpoint, the converted file."""
    monkeypatch.chdir(tmp_path)
    name = f"factory_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(FACTORY)
    module = make(name)
    torch.save(module.state_dict(), tmp_path / "net.pth")
    torch.export.save(torch.export.export(module, (torch.zeros(SHAPE),)), tmp_path / "net.pt2")
    graph = import_torch(module, input_shape=SHAPE)
    (tmp_path / "net.pbit").write_bytes(convert_graph(graph).content)
    return tmp_path


def make(name: str) -> Any:
    """The factory's network."""
    scope: dict[str, Any] = {"__name__": name}
    exec(FACTORY, scope)
    return scope["make"]()


def test_a_program_agrees_with_pytorchs_own_activations(cli: Cli, folder: Path) -> None:
    done = cli("verify", "net.pt2", "net.pbit", "--device", "cpu")
    assert done.code == 0, done.out + done.err
    assert "fed from PyTorch's own activations" in done.out
    document = cli("verify", "net.pt2", "net.pbit", "--device", "cpu", "--json").document
    assert (document["framework"], document["reference"]) == ("PyTorch", "framework")
    (device,) = document["devices"]
    assert {layer["oracle"] for layer in device["layers"]} == {"source"}


def test_a_checkpoint_needs_its_factory_but_takes_the_shape_from_the_file(
    cli: Cli, folder: Path
) -> None:
    options = ("net.pth", "net.pbit", "--device", "cpu")
    assert "--model" in cli.refused("verify", *options)
    model = f"factory_{folder.name}:make"
    assert cli("verify", *options, "--model", model).code == 0
    assert cli("verify", *options, "--model", model, "--input-shape", "1,3,12,10").code == 0
    text = cli.refused("verify", *options, "--model", model, "--input-shape", "1,3,x")
    assert "not a shape" in text


def test_a_live_module_takes_inputs_in_its_own_order_of_axes(folder: Path) -> None:
    x = np.random.default_rng(1).normal(size=(3, *SHAPE[1:])).astype(np.float32)
    module = make("live")
    report = verify(module, folder / "net.pbit", x, device="cpu")
    assert report.passed, report.to_dict()
    assert report.samples == 3
    moved = verify(module, folder / "net.pbit", x.transpose(0, 2, 3, 1), device="cpu")
    assert moved.layers == report.layers


def test_the_reference_interpreter_is_used_when_asked(folder: Path) -> None:
    report = verify(folder / "net.pt2", folder / "net.pbit", framework=False, device="cpu")
    assert (report.passed, report.reference, report.reason) == (True, "interpreter", "as asked")


def test_a_zero_that_pytorch_keeps_and_the_file_counts_is_shown(folder: Path) -> None:
    class Bare(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(32, 8, 3, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.conv2d(torch.sign(x), torch.sign(self.conv.weight))

    module = Bare().eval()
    graph = import_torch(module, input_shape=(1, 32, 6, 5))
    file = folder / "bare.pbit"
    file.write_bytes(convert_graph(graph, zeros="plus").content)
    x = np.random.default_rng(2).normal(size=(2, 6, 5, 32)).astype(np.float32)
    x[1, 2, 3, 4:6] = 0
    report = verify(module, file, x, device="cpu")
    assert report.passed, report.to_dict()
    assert (report.zeros, report.ties, report.end_to_end.zeros) == (2, 0, 2)
    assert [layer.verdict for layer in report.layers] == ["exact zeros", "equal"]
    exact = convert_graph(graph, zeros="exact").content
    file.write_bytes(exact)
    report = verify(module, file, x, device="cpu")
    assert (report.zeros, report.end_to_end.verdict) == (0, "equal")


def test_damage_is_found_at_its_layer(cli: Cli, folder: Path) -> None:
    graph = read_graph(folder / "net.pbit")
    node = [node for node in graph.nodes if isinstance(node.op, BinaryConv2D)][-1]
    assert isinstance(node.op, BinaryConv2D)
    weights = node.op.weights.copy()
    weights[3] *= -1
    node.op = replace(node.op, weights=weights)
    (folder / "net.pbit").write_bytes(to_bytes(graph, {}))
    done = cli("verify", "net.pt2", "net.pbit", "--device", "cpu")
    assert done.code == 1
    assert f"first mismatch at layer '{node.name}'" in done.out
