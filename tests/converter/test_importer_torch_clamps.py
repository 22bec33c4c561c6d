"""Clamps written as sums of absolute values (PACT) are clamps, and their rounding a quantizer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor  # noqa: E402
from torch_checks import Lambda, assert_equal_to_pytorch, found, imported, kinds  # noqa: E402

from phonebit.converter.convert import convert_graph  # noqa: E402
from phonebit.converter.ops import BinaryConv2D, Elementwise  # noqa: E402
from phonebit.converter.ops.epilogue import Clamp  # noqa: E402

MAPS = (1, 4, 5, 5)

CLAMPS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float, float]] = {
    "0.5 * (|x| - |x - a| + a)": (lambda x, a: 0.5 * (x.abs() - (x - a).abs() + a), 0, 1.5),
    "(|x| - |x - a| + a) / 2": (lambda x, a: (x.abs() - (x - a).abs() + a) / 2, 0, 1.5),
    "(a + |x| - |a - x|) / 2": (lambda x, a: (a + x.abs() - (a - x).abs()).div(2), 0, 1.5),
    "(|x + a| - |x - a|) / 2": (lambda x, a: ((x + a).abs() - (x - a).abs()) / 2, -1.5, 1.5),
    "x - relu(x - a)": (lambda x, a: x - F.relu(x - a), -np.inf, 1.5),
}


@pytest.mark.parametrize("form", CLAMPS)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_clamp_in_other_words_is_a_clamp(form: str, shape: tuple[int, ...]) -> None:
    function, low, high = CLAMPS[form]
    limit = torch.full(shape, 1.5)
    source = imported(Lambda(lambda _, x: function(x, limit)), MAPS)
    assert kinds(source.graph) == ["Elementwise"]
    (op,) = found(source.graph, Elementwise)
    assert op.epilogue.steps == [Clamp(low, high)]
    assert_equal_to_pytorch(source)


@pytest.mark.parametrize("slope", [0, 0.25])
def test_a_relu_and_a_leaky_one_in_other_words_are_slopes(slope: float) -> None:
    one, other = (1 + slope) / 2, (1 - slope) / 2
    source = imported(Lambda(lambda _, x: one * x + other * x.abs()), MAPS)
    assert kinds(source.graph) == ["Elementwise"]
    assert_equal_to_pytorch(source)


@pytest.mark.parametrize("bits", [2, 4, 5])
def test_pact_in_front_of_signs_is_binary(bits: int) -> None:
    steps = 2**bits - 1

    def forward(self: Lambda, x: Tensor) -> Tensor:
        y = 0.5 * (x.abs() - (x - steps / 8).abs() + steps / 8)
        q = torch.round(y * 8) / 8
        return F.conv2d(q, torch.where(self.w >= 0, 1.0, -1.0), padding=1)

    source = imported(Lambda(forward, w=torch.zeros(32, 64, 3, 3)), (1, 64, 5, 5))
    assert_equal_to_pytorch(source)
    engine = convert_graph(source.graph).engine
    assert any(isinstance(node.op, BinaryConv2D) for node in engine.nodes)


def test_a_sum_that_is_no_clamp_stays_one() -> None:
    source = imported(Lambda(lambda _, x: x.abs() - (x - 1).abs() + 0.5), MAPS)
    assert len(kinds(source.graph)) > 1
    assert_equal_to_pytorch(source)
