"""Quantizers and straight-through estimators of many styles become the operators that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, autograd, nn  # noqa: E402
from torch_checks import (  # noqa: E402
    Lambda,
    assert_equal_to_pytorch,
    found,
    imported,
    kinds,
    step_names,
)

from phonebit.converter.importers.torch.jumps import keys_of, numbers_of  # noqa: E402
from phonebit.converter.interpreter import run  # noqa: E402
from phonebit.converter.ir import SMALLEST  # noqa: E402
from phonebit.converter.ops import Conv2D, Elementwise, Quantize, Sign  # noqa: E402
from phonebit.converter.ops.epilogue import Clamp, PRelu, ScaleBias  # noqa: E402

MAPS = (1, 4, 5, 5)
FLOATS = (0.0, 1.0, -1.0, 0.5, -0.5, 1 / 3, 2 / 3, 0.1, 3.0, 100.0, -7.25, 1e-30, -1e-30)


def edges(thresholds: np.ndarray) -> np.ndarray:
    """The thresholds, the numbers next to them, and others; no subnormal ones, which may be 0."""
    near = [np.nextafter(t, np.float32(d)) for t in thresholds for d in (-np.inf, np.inf)]
    numbers = np.array([*FLOATS, *thresholds, *near], np.float32)
    return numbers[(numbers == 0) | (np.abs(numbers) >= np.finfo(np.float32).tiny)]


def assert_quantizes_like_pytorch(function: Callable[[Tensor], Tensor], op: Any) -> None:
    """Every number at, below and above each threshold falls into the same level."""
    from phonebit.converter.interpreter import evaluate_node
    from phonebit.converter.ir import Node

    thresholds = np.array([op.threshold], np.float32) if isinstance(op, Sign) else op.thresholds
    numbers = edges(thresholds)
    node = Node("q", op, ["x"], "q")
    result = evaluate_node(node, [numbers.reshape(1, 1, 1, -1)])["q"].reshape(-1)
    repeated = torch.from_numpy(np.resize(numbers, 64 * -(-numbers.size // 64)))
    expected = function(repeated)[: numbers.size].float().numpy()
    np.testing.assert_array_equal(result.astype(np.float32), expected)


class OwnSign(autograd.Function):
    """A sign as people write it, with a gradient of their own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        out = x.sign()
        out[out == 0] = 1
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


SIGNS: dict[str, Callable[[Tensor], Tensor]] = {
    "where": lambda x: torch.where(x >= 0, 1.0, -1.0),
    "where with tensors": lambda x: torch.where(x < 0, -torch.ones_like(x), torch.ones_like(x)),
    "comparison": lambda x: (x >= 0).float() * 2 - 1,
    "two comparisons": lambda x: (x >= 0).to(x.dtype) - (x < 0).to(x.dtype),
    "sign plus one half": lambda x: (x.sign() + 0.5).sign(),
    "masked assignment": lambda x: OwnSign.apply(x),
    "masked_fill": lambda x: x.sign().masked_fill(x == 0, 1.0),
    "after a clamp": lambda x: torch.where(x.clamp(-1, 1) >= 0, 1.0, -1.0),
    "after tanh": lambda x: torch.where(torch.tanh(x * 3) >= 0, 1.0, -1.0),
    "logical": lambda x: torch.where(~(x < 0) & (x > -1) | (x > 5), 1.0, -1.0),
    "(hard - soft).detach() + soft": lambda x: (
        (torch.where(x >= 0, 1.0, -1.0) - x.clamp(-1, 1)).detach() + x.clamp(-1, 1)
    ),
    "x + (hard - x).detach()": lambda x: x + (torch.where(x >= 0, 1.0, -1.0) - x).detach(),
    "hard.detach() - soft.detach() + soft": lambda x: (
        torch.where(x >= 0, 1.0, -1.0).detach() - torch.tanh(x).detach() + torch.tanh(x)
    ),
    "soft + hard - soft": lambda x: x - x.detach() + torch.where(x >= 0, 1.0, -1.0),
    "polynomial": lambda x: polynomial(x),
}


def polynomial(x: Tensor) -> Tensor:
    """Bi-Real Net's approximation, of which only the sign is left in the inference."""
    hard = torch.where(x >= 0, 1.0, -1.0)
    low, middle, high = (x < -1).float(), (x < 0).float(), (x < 1).float()
    soft = -1 * low + (x * x + 2 * x) * (1 - low)
    soft = soft * middle + (-x * x + 2 * x) * (1 - middle)
    soft = soft * high + 1 * (1 - high)
    return hard.detach() - soft.detach() + soft


@pytest.mark.parametrize("style", SIGNS)
def test_every_way_to_write_a_sign_is_one_sign_operator(style: str) -> None:
    source = imported(Lambda(lambda _, x: SIGNS[style](x)), MAPS)
    assert kinds(source.graph) == ["Sign"]
    (op,) = found(source.graph, Sign)
    assert op.threshold == 0
    assert_quantizes_like_pytorch(lambda x: torch.where(x >= 0, 1.0, -1.0), op)


def test_an_estimator_is_its_forward_value_in_pytorchs_activations_too() -> None:
    def estimator(m: Any, x: Tensor) -> Tensor:
        soft = torch.tanh(m.conv(x)) * 0.3
        return m.conv(torch.where(x >= 0, 1.0, -1.0).detach() - soft.detach() + soft)

    module = Lambda(estimator, conv=nn.Conv2d(4, 4, 1))
    source = imported(module, MAPS)
    maps = np.random.default_rng(0).normal(size=(2, 5, 5, 4)).astype(np.float32)
    with torch.no_grad():
        rounded = module(torch.from_numpy(np.moveaxis(maps, 3, 1))).numpy()
    values = assert_equal_to_pytorch(source, {source.graph.inputs[0]: maps})
    exact = values[source.graph.outputs[0]]
    assert (exact * 8 == np.round(exact * 8)).all()
    np.testing.assert_allclose(np.moveaxis(exact, 3, 1), rounded, rtol=0, atol=1e-5)
    assert (np.moveaxis(exact, 3, 1) != rounded).any()


STEPS: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "sign, whose 0 stays 0": (torch.sign, 3),
    "sign of a negative multiple": (lambda x: torch.sign(x * -0.25), 3),
    "greater than": (lambda x: (x > 0.3).float(), 2),
    "less or equal, negated": (lambda x: -(x <= 0.3).float(), 2),
    "equal": (lambda x: (x == 1).float(), 3),
    "not equal": (lambda x: (x != 1).float() * 3, 3),
    "cast to bool": (lambda x: x.bool().float(), 3),
    "heaviside": (lambda x: torch.heaviside(x, torch.tensor(0.5)), 3),
    "magnitude": (lambda x: (x.abs() <= 2).float(), 3),
    "ternary": (lambda x: (x > 0.5).float() - (x < -0.5).float(), 3),
    "ternary by where": (lambda x: torch.where(x.abs() > 0.7, x.sign(), torch.zeros_like(x)), 3),
    "two bits": (lambda x: torch.round(x.clamp(0, 1) * 3) / 3, 4),
    "two bits, (2^k - 1) / 3": (lambda x: torch.round(F.hardtanh(x, 0, 1) * 3).div(3), 4),
    "floor": (lambda x: torch.floor(torch.sigmoid(x) * 4 + 0.5) * 0.1, 5),
    "half to even, clamped afterwards": (lambda x: torch.round(x / 0.7).clamp(-2, 2) * 0.7, 5),
    "clamped by where": (lambda x: clamped(torch.round(x / 0.25), -2.0, 1.0) * 0.25, 4),
    "integers": (lambda x: (x * 3).clamp(0, 3).int().float(), 4),
    "shifted and scaled sign": (lambda x: 0.3 * (torch.sign((x - 0.1) / 0.3) + 0.1 / 0.3), 3),
    "learned step": (lambda x: torch.round((x / 0.3713).clamp(-4, 3)) * 0.3713, 8),
}


def clamped(x: Tensor, low: float, high: float) -> Tensor:
    """Clamp as Brevitas writes it."""
    x = torch.where(x > high, torch.tensor(high).type_as(x), x)
    return torch.where(x < low, torch.tensor(low).type_as(x), x)


@pytest.mark.parametrize("name", STEPS)
def test_step_functions_become_quantizers_with_pytorchs_own_thresholds(name: str) -> None:
    function, levels = STEPS[name]
    source = imported(Lambda(lambda _, x: function(x)), MAPS)
    graph = source.graph
    (op,) = found(graph, Quantize)
    assert op.values.size == levels
    shifts = [step for o in found(graph, Elementwise) for step in o.epilogue.steps]
    if not shifts:
        assert_quantizes_like_pytorch(function, op)
    numbers = edges(op.thresholds - (shifts[0].bias[0] if shifts else 0))
    maps = np.resize(numbers, (2 * -(-numbers.size // 100) * 50 // 50, 5, 5, 4)).astype(np.float32)
    assert_equal_to_pytorch(source, {graph.inputs[0]: maps})


def test_a_level_of_one_number_is_told_to_be_an_exact_zero() -> None:
    graph = imported(Lambda(lambda _, x: torch.sign((x - 0.3) / 2)), MAPS).graph
    assert kinds(graph) == ["Elementwise", "Quantize"]
    assert found(graph, Quantize)[0].thresholds.tolist() == [0.0, SMALLEST]
    (shift,) = found(graph, Elementwise)[0].epilogue.steps
    assert isinstance(shift, ScaleBias) and (shift.bias == np.float32(-0.3)).all()


@pytest.mark.parametrize("bits", [5, 8])
@pytest.mark.parametrize("style", ["dorefa", "brevitas"])
def test_quantizers_of_many_levels_are_computed_and_hit_every_level(bits: int, style: str) -> None:
    n = 2**bits - 1

    def function(x: Tensor) -> Tensor:
        if style == "dorefa":
            return torch.round(x.clamp(0, 1) * n) / n
        return clamped(torch.round((2 * x - 1) / 2.0**-4), -n // 2, n // 2) * 2.0**-4

    source = imported(Lambda(lambda _, x: function(x)), MAPS)
    assert not found(source.graph, Quantize)
    ties = (np.arange(-n, 2 * n) + 0.5) / n if style == "dorefa" else np.arange(-40, 40) / 64
    ties = ties.astype(np.float32)
    numbers = np.concatenate([ties, np.nextafter(ties, np.float32(9)), np.nextafter(ties, -9)])
    maps = np.resize(numbers, (-(-numbers.size // 100), 5, 5, 4)).astype(np.float32)
    name = source.graph.inputs[0]
    expected = source.activations({name: maps})
    for value, array in run(source.graph, {name: maps}, source.graph.types).items():
        if value in expected:
            np.testing.assert_allclose(array, expected[value], rtol=1e-6, atol=0, err_msg=value)


def test_rounding_without_limits_is_a_step() -> None:
    source = imported(Lambda(lambda _, x: torch.round(x * 4.5) / 4.5), MAPS)
    assert step_names(source.graph) == ["ScaleBias", "Round"]
    assert_equal_to_pytorch(source)


def test_a_sign_reads_what_others_read_too_and_skips_what_only_it_reads() -> None:
    shared = imported(
        Lambda(lambda m, x: m.c(torch.sign(y := m.b(x).clamp(-1, 1))) + y, b=nn.BatchNorm2d(4),
               c=nn.Conv2d(4, 4, 1)), MAPS
    ).graph  # fmt: skip
    alone = imported(
        Lambda(lambda m, x: m.c(torch.sign(m.b(x).clamp(-1, 1))), b=nn.BatchNorm2d(4),
               c=nn.Conv2d(4, 4, 1)), MAPS
    ).graph  # fmt: skip
    assert kinds(shared) == ["BatchNorm", "Elementwise", "Quantize", "Conv2D", "Elementwise"]
    assert kinds(alone) == ["BatchNorm", "Quantize", "Conv2D"]


def test_the_range_of_a_tensor_that_others_read_too_is_known() -> None:
    source = imported(Lambda(lambda _, x: torch.round((y := x.clamp(0, 1)) * 3) + y), MAPS)
    assert kinds(source.graph) == ["Elementwise", "Quantize", "Elementwise"]
    assert found(source.graph, Quantize)[0].values.tolist() == [0, 1, 2, 3]
    assert_equal_to_pytorch(source)


def test_thresholds_of_each_channel_are_a_shift_and_a_sign() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        return (x > m.b).float() * 2 - 1 + (m.b >= x).float()

    source = imported(Lambda(forward, b=torch.ones(1, 4, 1, 1)), MAPS)
    graph = source.graph
    assert kinds(graph) == ["Elementwise", "Sign", "Elementwise", "Quantize", "Elementwise"]
    above, below = found(graph, Elementwise)[0], found(graph, Elementwise)[1]
    np.testing.assert_array_equal(above.epilogue.steps[0].bias, -below.epilogue.steps[0].bias)
    near = np.nextafter(-above.epilogue.steps[0].bias, [[-9], [0], [9]], dtype=np.float32)
    maps = np.tile(near.reshape(3, 1, 1, 4), (1, 5, 5, 1))
    assert_equal_to_pytorch(source, {graph.inputs[0]: maps})


PIECES: dict[str, tuple[Callable[..., Any], dict[str, Any], type[Any]]] = {
    "relu by where": (lambda m, x: torch.where(x > 0, x, 0.0), {}, Clamp),
    "relu by mask": (lambda m, x: x * (x > 0), {}, Clamp),
    "relu by maximum": (lambda m, x: torch.maximum(x, torch.zeros_like(x)), {}, Clamp),
    "minus relu of minus x": (lambda m, x: -F.relu(-x), {}, Clamp),
    "leaky by where": (lambda m, x: torch.where(x >= 0, x, 0.25 * x), {}, PRelu),
    "prelu by parts": (
        lambda m, x: F.relu(x) - m.a * F.relu(-x),
        {"a": torch.ones(1, 4, 1, 1)},
        PRelu,
    ),
    "maxout of two scales": (
        lambda m, x: F.relu(x) * m.p - F.relu(-x) * m.n,
        {"p": torch.ones(1, 4, 1, 1), "n": torch.ones(1, 4, 1, 1)},
        PRelu,
    ),
    "clamp by where": (lambda m, x: clamped(x, -1.0, 1.0), {}, Clamp),
    "magnitude": (lambda m, x: torch.where(x < 0, -x, x), {}, PRelu),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_of_multiples_become_clamps_and_prelus(name: str) -> None:
    function, parts, step = PIECES[name]
    source = imported(Lambda(function, **parts), MAPS)
    assert set(step_names(source.graph)) == {step.__name__}
    assert_equal_to_pytorch(source)


WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean magnitude": lambda w: w.abs().mean((1, 2, 3), keepdim=True) * w.sign(),
    "detach trick": lambda w: (
        (w.abs().mean((1, 2, 3), keepdim=True) * w.sign()).detach()
        - w.clamp(-1, 1).detach() + w.clamp(-1, 1)
    ),
    "centred and clamped": lambda w: (w - w.mean(1, keepdim=True)).clamp(-1, 1).sign(),
    "standardised, power of two": lambda w: (
        ((w - w.mean((1, 2, 3), keepdim=True)) / w.std((1, 2, 3), keepdim=True)).sign()
        * 2 ** torch.round(torch.log2(w.abs().mean((1, 2, 3), keepdim=True)))
    ),
    "where": lambda w: torch.where(w >= 0, 1.0, -1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WEIGHTS)
def test_kernels_are_computed_once_and_known_to_be_binary(name: str) -> None:
    module = Lambda(
        lambda m, x: F.conv2d(torch.sign(x), WEIGHTS[name](m.w)), w=torch.ones(6, 4, 3, 3)
    )
    with torch.no_grad():
        module.w.copy_(torch.randn(6, 4, 3, 3, generator=torch.Generator().manual_seed(1)))
    graph = imported(module, MAPS).graph
    (op,) = found(graph, Conv2D)
    signs = np.sign(WEIGHTS[name](module.w).detach().numpy()).transpose(0, 2, 3, 1)
    assert set(np.unique(signs)) <= {-1.0, 1.0}
    magnitudes = np.abs(op.weights)
    np.testing.assert_array_equal(np.sign(op.weights), signs)
    assert (magnitudes == magnitudes[:, :1, :1, :1]).all()
    assert graph.expected_binary == ["conv2d"]


def test_only_layers_with_quantized_input_and_kernel_are_expected_to_be_binary() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.first(x)
        x = F.conv2d(x, m.w.sign(), padding=1)  # real input
        x = m.real(torch.sign(x))  # real kernel
        x = F.max_pool2d(F.pad(torch.sign(x) * 0.5, (1, 1, 1, 1)), 2)
        return F.linear(F.conv2d(x, m.w.sign()).sign().flatten(1), m.v.sign())

    module = Lambda(
        forward,
        first=nn.Conv2d(4, 4, 3, padding=1),
        real=nn.Conv2d(4, 4, 3, padding=1),
        w=torch.ones(4, 4, 3, 3),
        v=torch.ones(3, 4),
    )
    assert imported(module, MAPS).graph.expected_binary == ["conv2d_1", "linear"]


def test_keys_number_the_floats_in_order_without_gaps() -> None:
    numbers = np.array([-np.float32(3.4e38), -1, -SMALLEST, 0, SMALLEST, 1, 2], np.float32)
    keys = keys_of(numbers)
    assert (np.diff(keys) > 0).all() and keys[3] == 0 and keys[4] == 1
    np.testing.assert_array_equal(numbers_of(keys), numbers)
    assert (numbers_of(keys + 1) == np.nextafter(numbers, np.float32(np.inf))).all()
    assert keys_of(np.array([-0.0], np.float32))[0] == 0
