"""Operators in place are replaced without tracing again where that changes no value."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch_checks import Lambda, assert_equal_to_pytorch  # noqa: E402

from phonebit.converter.importers.torch import functional  # noqa: E402
from phonebit.converter.importers.torch.importer import import_torch, open_torch  # noqa: E402
from phonebit.converter.interpreter import run as interpret  # noqa: E402

Function = Callable[[nn.Module, Tensor], Tensor]


def activated(m: nn.Module, x: Tensor) -> Tensor:
    return F.dropout(F.hardtanh(m.norm(m.conv(x)), inplace=True), 0.5, False)


def added_to(m: nn.Module, x: Tensor) -> Tensor:
    y = m.conv(x)
    y += x
    return F.relu(y, inplace=True) - x.expand_as(y)


def read_before(m: nn.Module, x: Tensor) -> Tensor:
    y = m.conv(x)
    before = y * 2
    y += x
    y.mul_(0.5)
    return before + y


def viewed_before(m: nn.Module, x: Tensor) -> Tensor:
    y = m.conv(x)
    halves = y[:, :4] + y[:, 4:]
    y.relu_()
    return y[:, :4] - halves


def functions(m: nn.Module, x: Tensor) -> Tensor:
    return m.conv(x).round_().abs_().sqrt_()


def constant(m: nn.Module, x: Tensor) -> Tensor:
    return x.clone().add_(torch.tensor(0.5))


def viewed_later(m: nn.Module, x: Tensor) -> Tensor:
    y = m.conv(x)
    half = y[:, :4]
    y.relu_()
    return half + y[:, 4:]


def written_through_a_view(m: nn.Module, x: Tensor) -> Tensor:
    y = m.conv(x)
    y.view(1, 8, -1).relu_()
    return y * 2


def parameter(m: nn.Module, x: Tensor) -> Tensor:
    shift = m.conv.bias.view(1, 8, 1, 1).expand(1, 8, 3, 4)
    return x + shift.clone() * 2 + F.relu(shift.contiguous().view(1, 8, 3, 4), inplace=True)


REPLACED = [activated, added_to, read_before, viewed_before, functions, constant]
LEFT = [viewed_later, written_through_a_view, parameter]


def run(function: Function, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether PyTorch had to trace the program again; results are compared with PyTorch's."""
    module = Lambda(function, conv=nn.Conv2d(8, 8, 1), norm=nn.BatchNorm2d(8)).eval()
    traced: list[Any] = []
    again = functional.decomposed
    monkeypatch.setattr(functional, "decomposed", lambda p: traced.append(p) or again(p))
    x = torch.arange(-48.0, 48.0).view(1, 8, 3, 4) / 8
    with torch.no_grad():
        expected = module(x.clone()).numpy()
    source = open_torch(module, example_input=x)
    operators = {node.target for node in source.program.graph.nodes if node.op == "call_function"}
    assert not any(getattr(o, "_schema", None) and o._schema.is_mutable for o in operators)
    (name,) = source.graph.inputs
    values = assert_equal_to_pytorch(source, {name: x.numpy().transpose(0, 2, 3, 1).copy()})
    result = values[source.graph.outputs[0]]
    assert result.size == expected.size
    got = result.transpose(0, 3, 1, 2).reshape(expected.shape)
    assert (got == expected).all()
    return bool(traced)


@pytest.mark.parametrize("function", REPLACED, ids=lambda f: f.__name__)
def test_what_nothing_reads_later_is_replaced(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not run(function, monkeypatch)


@pytest.mark.parametrize("function", LEFT, ids=lambda f: f.__name__)
def test_what_is_read_later_is_left_to_pytorch(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(function, monkeypatch)


def test_a_users_program_stays_as_it_is() -> None:
    module = Lambda(added_to, conv=nn.Conv2d(8, 8, 1)).eval()
    exported = torch.export.export(module, (torch.zeros(1, 8, 3, 4),), strict=False)
    before = str(exported.graph)
    assert str(functional.functional(exported).graph) != before
    assert str(exported.graph) == before


ARGUMENTS = sorted(
    {name for name in dir(builtins) if name.islower() and name != "__debug__"}
    | {*keyword.softkwlist, "output", "args", "root", "device", "inf", "nan", "torch", "operator"}
    | {"x_1", "add", "add_1", "conv", "p_conv_weight", "c_lifted_tensor_0", "forward"}
)


def called(name: str) -> nn.Module:
    """A network that writes in place, and the argument of whose forward function has this name."""
    space: dict[str, Any] = {"torch": torch}
    text = f"def forward(this, {name}):\n y = this.conv({name} * this.two)\n y += 1\n return y"
    exec(text, space)
    module = type("Called", (nn.Module,), {"forward": space["forward"]})()
    module.conv, module.two = nn.Conv2d(2, 3, 1), torch.tensor(2.0)
    return module.eval()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_may_have_any_name(name: str) -> None:
    module = called(name)
    x = torch.arange(-9.0, 9.0).view(1, 2, 3, 3)
    exported = torch.export.export(module, (x,), strict=False)
    (given,) = exported.graph_signature.user_inputs
    graph = import_torch(exported)
    assert graph.inputs == [given]
    values = interpret(graph, {given: x.numpy().transpose(0, 2, 3, 1)}, graph.outputs)
    with torch.no_grad():
        expected = module(x).numpy().transpose(0, 2, 3, 1)
    np.testing.assert_allclose(values[graph.outputs[0]], expected, rtol=0, atol=1e-5)


IN_PLACE_LAYERS = [
    nn.ReLU(inplace=True),
    nn.ReLU6(inplace=True),
    nn.LeakyReLU(inplace=True),
    nn.Hardtanh(inplace=True),
    nn.Hardswish(inplace=True),
    nn.ELU(inplace=True),
    nn.SiLU(inplace=True),
    nn.Mish(inplace=True),
]


@pytest.mark.parametrize("layer", IN_PLACE_LAYERS, ids=lambda layer: type(layer).__name__)
def test_plain_sequences_with_layers_in_place_convert(layer: nn.Module) -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), layer).eval()
    x = torch.linspace(-9, 9, 192).view(1, 3, 8, 8)
    graph = import_torch(module, input_shape=x.shape)
    values = interpret(graph, {"input": x.numpy().transpose(0, 2, 3, 1)}, graph.outputs)
    with torch.no_grad():
        expected = module(x.clone()).numpy().transpose(0, 2, 3, 1)
    np.testing.assert_allclose(values[graph.outputs[0]], expected, rtol=1e-5, atol=1e-5)
