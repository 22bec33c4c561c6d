"""``torch.compile(module, backend="phonebit")``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from accelerated_networks import Sorted, chain, eager, numbers  # noqa: E402
from torch import nn  # noqa: E402

import phonebit  # noqa: E402
from phonebit.network import Network  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches that PhoneBit computes."""
    seen: list[int] = []
    forward = Network.forward

    def spy(network: Network, x: Any, out: Any = None) -> Any:
        seen.append(len(next(iter(x.values()))))
        return forward(network, x, out)

    monkeypatch.setattr(Network, "forward", spy)
    return seen


def test_batches_of_any_size_run_on_phonebit(runs: list[int]) -> None:
    module = chain(nn.BatchNorm2d(32)).eval()
    fast = torch.compile(module, backend="phonebit")
    with torch.no_grad():
        for batch in (2, 3, 5, 4):
            x = numbers(batch, seed=batch)
            assert torch.allclose(fast(x), eager(module, x), rtol=1e-6)
    assert runs == [2, 3, 5, 4]


def test_other_maps_are_compiled_again(runs: list[int]) -> None:
    module = chain()
    fast = torch.compile(module, backend="phonebit")
    with torch.inference_mode():
        for shape in ((32, 6, 7), (32, 5, 4), (32, 9, 9)):
            x = numbers(2, shape=shape)
            assert torch.equal(fast(x), eager(module, x))
    assert runs == [2, 2, 2]


def test_changed_parameters_are_seen(runs: list[int]) -> None:
    module = chain()
    fast = torch.compile(module, backend="phonebit")
    x = numbers(2)
    with torch.no_grad():
        fast(x)
        module[0].weight.neg_()
        assert torch.equal(fast(x), eager(module, x))
    assert runs == [2, 2]


def test_graphs_around_a_break_run_on_phonebit(runs: list[int]) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = chain()[0], chain()[1]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    module = Broken().eval()
    x = numbers(2)
    with torch.no_grad():
        assert torch.equal(torch.compile(module, backend="phonebit")(x), eager(module, x))
    assert runs == [2, 2]


def test_what_does_not_convert_or_wants_gradients_stays_in_pytorch(runs: list[int]) -> None:
    module, x = chain(Sorted()), numbers(2)
    with torch.no_grad(), pytest.warns(phonebit.PhoneBitWarning, match=r"stays in PyTorch.*sort"):
        assert torch.equal(torch.compile(module, backend="phonebit")(x), eager(module, x))
    learning = chain()
    with pytest.warns(phonebit.PhoneBitWarning, match=r"gradients are wanted; use torch.no_grad"):
        result = torch.compile(learning, backend="phonebit")(x)
    assert result.requires_grad and torch.equal(result, eager(learning, x))
    assert runs == []
