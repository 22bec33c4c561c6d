"""``phonebit.accelerate``: modules of which only parts run on PhoneBit, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from accelerated_networks import Sorted, SortedOnTheWay, chain, eager, numbers  # noqa: E402
from torch import nn  # noqa: E402

import phonebit  # noqa: E402
from phonebit.torch.accelerate import check_version  # noqa: E402
from phonebit.torch.module import NetworkModule  # noqa: E402

pytestmark = pytest.mark.torch


def test_neighbours_in_a_chain_become_one_part() -> None:
    module = chain(nn.ReLU(), nn.Identity(), Sorted())
    fast = phonebit.accelerate(module, numbers(1))
    assert [part.name for part in fast.report.parts] == ["0 to 2", "4 to 5"]
    assert list(fast.report.rest) == ["", "3"]
    assert all("sort is not supported" in reason for reason in fast.report.rest.values())
    x = numbers(4, seed=2)
    assert torch.equal(fast(x), eager(module, x))
    assert torch.equal(pickle.loads(pickle.dumps(fast))(x), eager(module, x))
    assert isinstance(module[0].weight, nn.Parameter)
    with pytest.raises(phonebit.InputError, match="evaluation mode only"):
        copy.deepcopy(fast).train()(x)


def test_parts_of_a_module_tree() -> None:
    torch.manual_seed(2)
    module = SortedOnTheWay().eval()
    fast = phonebit.accelerate(module, numbers(2))
    assert [(part.name, part.binary_layers) for part in fast.report.parts] == [
        ("body", 2),
        ("tail", 1),
    ]
    assert fast.report.rest["scale"] == "is called with other things than tensors of one shape"
    assert sum(isinstance(part, NetworkModule) for part in fast.modules()) == 2
    x = numbers(3, seed=8)
    assert torch.equal(fast(x), eager(module, x))


def test_a_module_that_is_called_twice_is_one_part() -> None:
    module = chain(Sorted())
    module.append(nn.Unflatten(1, (5, 1, 1)))
    shared = nn.Sequential(module[0], Sorted(), module[0], Sorted()).eval()
    fast = phonebit.accelerate(shared, numbers(1))
    assert [part.name for part in fast.report.parts] == ["0"]
    x = numbers(2)
    assert torch.equal(fast(x), eager(shared, x))


def test_a_network_without_a_binary_layer_is_returned_unchanged() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    with pytest.warns(phonebit.PhoneBitWarning, match="unchanged: no binary layer.*\n.*has no bin"):
        assert phonebit.accelerate(module, torch.zeros(1, 3, 8, 8)) is module


def test_a_module_that_reads_a_parts_weights_is_returned_unchanged() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = chain()[0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x).sort(1).values + self.body.weight.sum()

    module = Reads().eval()
    with pytest.warns(phonebit.PhoneBitWarning, match="parts cannot be replaced.*weight"):
        assert phonebit.accelerate(module, numbers(1)) is module


def test_arguments_that_are_wrong_are_refused_in_a_sentence() -> None:
    module: Any = chain()
    with pytest.raises(phonebit.InputError, match=r"not a torch.nn.Module \(got int"):
        phonebit.accelerate(3, numbers(1))
    with pytest.raises(phonebit.InputError, match="a tuple of tensors, got str"):
        phonebit.accelerate(module, "x")
    with pytest.raises(phonebit.DeviceError, match=r"got meta\); pass module.cpu\(\)"):
        phonebit.accelerate(copy.deepcopy(module).to("meta"), numbers(1))
    with pytest.raises(phonebit.ConversionError, match="Sequential: does not run on the example"):
        phonebit.accelerate(module, numbers(1, shape=(3, 4, 4)))


def test_a_pytorch_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    with pytest.raises(phonebit.ConversionError, match=r"2.6 or later, got 2.5.1.*phonebit\[torch"):
        check_version()
