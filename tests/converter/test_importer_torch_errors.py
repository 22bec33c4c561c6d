"""What is said about modules of PyTorch that cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch_checks import Lambda, kinds  # noqa: E402

from phonebit.converter.importers.torch.importer import import_torch, open_torch  # noqa: E402
from phonebit.errors import ConversionError, InputError, UnsupportedLayerError  # noqa: E402

SHAPE = (1, 3, 6, 6)


def test_everything_unsupported_is_listed_at_once_with_its_place() -> None:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.RReLU())
            self.matrix = Lambda(lambda m, x: torch.linalg.inv(x))
            self.last = nn.RReLU()

        def forward(self, x: Any) -> Any:
            x = self.last(torch.sin(self.matrix(self.features(x))))
            return torch.round(x).mean((2, 3)) + torch.erfinv(x).sum()

    with pytest.raises(UnsupportedLayerError) as caught:
        import_torch(Network(), input_shape=SHAPE)
    assert caught.value.problems == [
        "features.1, last: aten.rrelu is not supported",
        "matrix: aten.linalg_inv is not supported",
        "sin: aten.sin is not supported; it is computed of constants only: give what it makes of "
        "positions as a buffer",
        "erfinv: aten.erfinv is not supported; it is computed of constants only: give what it "
        "makes of positions as a buffer",
    ]
    lines = caught.value.__notes__
    assert [line.split(" ")[:2] for line in lines] == [
        ["features.1:", "aten.rrelu:"],
        ["matrix:", "aten.linalg_inv:"],
        ["sin:", "aten.sin:"],
        ["last:", "aten.rrelu:"],
        ["erfinv:", "aten.erfinv:"],
    ]
    assert all(Path(__file__).name in line for line in lines if "matrix" not in line)
    assert "x = self.last(torch.sin(self.matrix(self.features(x))))" in lines[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m, x: torch.floor(x), "clamp it first"),
        (lambda m, x: x.mean(), "reduces a whole tensor"),
        (lambda m, x: x.mean(0, keepdim=True), "reduces the batch"),
        (lambda m, x: torch.div(x, x + 9, rounding_mode="floor"), "divides and rounds"),
        (lambda m, x: x.norm(3, dim=1), "a norm of order 3"),
        (lambda m, x: x**17, "a power to 17; expected an exponent other than 0, up to 16"),
        (lambda m, x: x**x, "may be 0 or negative"),
        (lambda m, x: (-2) ** x, "may be 0 or negative"),
        (lambda m, x: F.softplus(x, threshold=5), "a threshold below 17"),
        (
            lambda m, x: F.conv_transpose2d(x, torch.ones(3, 1, 2, 2), None, 3, 0, 2),
            "pads its output",
        ),
        (lambda m, x: F.conv2d(x, x), "its kernel depends on an input"),
        (lambda m, x: F.batch_norm(x, None, None, training=True), "statistics of the batch"),
        (lambda m, x: x.double() + 1, "convert the network in float32"),
        (lambda m, x: (x, torch.ones(1, 3)), "does not depend on an input"),
    ],
)
def test_what_cannot_be_expressed_is_explained(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedLayerError) as caught:
        import_torch(Lambda(function), input_shape=SHAPE)
    assert message in str(caught.value)


def test_branches_on_values_are_explained_with_the_line_that_branches() -> None:
    with pytest.raises(ConversionError) as caught:
        import_torch(Lambda(lambda m, x: x * 2 if x.sum() > 0 else x), input_shape=SHAPE)
    assert "torch.where" in str(caught.value)
    assert f"({Path(__file__).name}:" in str(caught.value) and "if x.sum() > 0" in str(caught.value)


def test_a_mistake_of_the_users_own_gets_no_advice_on_branches() -> None:
    with pytest.raises(ConversionError) as caught:
        import_torch(Lambda(lambda m, x: x.view(7) + x.view(7) + x.view(7)), input_shape=SHAPE)
    text = str(caught.value)
    assert "torch.where" not in text and "x.view(7)" in text and len(text) < 400


def test_layers_without_shapes_are_called_that() -> None:
    with pytest.raises(ConversionError, match="call the module once with an example"):
        import_torch(nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), input_shape=SHAPE)


def test_a_module_keeps_nothing_of_its_tracing() -> None:
    def forward(m: Any, x: Any) -> Any:
        if not hasattr(m, "latent"):
            m.latent = m.conv.weight.detach().clone()
        return F.conv2d(x, torch.sign(m.latent))

    module = Lambda(forward, conv=nn.Conv2d(3, 2, 1)).train()
    import_torch(module, input_shape=SHAPE)
    assert not hasattr(module, "latent") and module.training and module.conv.training
    assert module(torch.ones(SHAPE)).isfinite().all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_live_script_is_called_that() -> None:
    script = torch.jit.trace(nn.Conv2d(3, 2, 1), torch.zeros(SHAPE))
    with pytest.raises(ConversionError, match="is TorchScript"):
        import_torch(script, input_shape=SHAPE)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (3, {}, "expected a path, an nn.Module or an ExportedProgram"),
        (nn.Linear(2, 2).half(), {"input_shape": (1, 2)}, "convert module.float()"),
        (nn.Identity(), {"example_input": np.zeros((1, 4), np.bool_)}, "bool"),
        (nn.Identity(), {"input_shape": (1, 2, 3, 4, 5, 6)}, "two to five axes"),
    ],
)
def test_sources_that_are_no_network_of_floats_are_refused(
    source: Any, options: Any, message: str
) -> None:
    with pytest.raises(ConversionError) as caught:
        import_torch(source, **options)
    assert message in str(caught.value)


def test_activations_name_an_input_that_is_missing_or_has_another_shape() -> None:
    source = open_torch(Lambda(lambda m, x: x * 2), input_shape=SHAPE)
    (name,) = source.graph.inputs
    for inputs in ({}, {name: np.zeros((1, 3, 6, 6), np.float32)}):
        with pytest.raises(InputError, match=name):
            source.activations(inputs)


def test_the_importer_itself_needs_no_pytorch_until_it_is_used() -> None:
    code = (
        "import sys, phonebit.converter.importers.torch.importer; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_an_exported_program_with_parameters_of_its_own_needs_no_names() -> None:
    exported = torch.export.export(nn.Linear(4, 2).eval(), (torch.zeros(1, 4),), strict=False)
    graph = import_torch(exported)
    assert (graph.name, kinds(graph)) == ("network", ["Conv2D"])
