"""Matrix products of activations, einsum and attention in PyTorch; products of bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch_checks import Lambda, assert_equal_to_pytorch, images, imported  # noqa: E402

import phonebit  # noqa: E402
from phonebit.converter.interpreter import run  # noqa: E402
from phonebit.converter.ops import MatMul, Softmax  # noqa: E402
from phonebit.converter.passes.pipeline import run_pipeline  # noqa: E402
from phonebit.devices.gpus import gpu_devices  # noqa: E402
from phonebit.errors import UnsupportedLayerError  # noqa: E402
from phonebit.format.records import DataType  # noqa: E402

pytestmark = pytest.mark.torch

MAPS, TOKENS = (2, 4, 6, 6), (2, 9, 32)
COUNTS = torch.arange(54.0).reshape(6, 9) / 8


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.view(len(x), 9, 4, 8).transpose(1, 2)


PRODUCTS: dict[str, tuple[tuple[int, ...], Callable[[Any, torch.Tensor], torch.Tensor]]] = {
    "maps": (MAPS, lambda _, x: torch.matmul(x, x)),
    "one for all": (MAPS, lambda _, x: x @ x[:, :1]),
    "heads": (TOKENS, lambda _, x: heads(x) @ heads(x).transpose(-1, -2)),
    "first constant": (TOKENS, lambda _, x: torch.matmul(COUNTS, x) + 1),
    "constant of heads": (MAPS, lambda _, x: x @ (torch.arange(96.0).reshape(4, 6, 4) / 8)),
    "einsum": (TOKENS, lambda _, x: torch.einsum("bnc,bmc->bmn", x, x) + 1),
    "einsum of pixels": (MAPS, lambda _, x: torch.einsum("bchw,bdhw->bcd", x, x) + 1),
    "einsum, constant": (TOKENS, lambda _, x: torch.einsum("mn,bnc->bcm", COUNTS, x) + 1),
    "einsum of one": (MAPS, lambda _, x: torch.einsum("bchw->bwch", x) + 1),
}
SHARES: dict[str, tuple[tuple[int, ...], Callable[[Any, torch.Tensor], torch.Tensor]]] = {
    **{f"axis {axis}": (MAPS, lambda _, x, axis=axis: x.softmax(axis) + 1) for axis in (1, 2, 3)},
    "pixels": (MAPS, lambda _, x: x.flatten(2).log_softmax(-1) + 1),
    "attention": (TOKENS, lambda _, x: F.scaled_dot_product_attention(*[heads(x)] * 3)),
    "causal": (
        TOKENS,
        lambda _, x: F.scaled_dot_product_attention(*[heads(x)] * 3, is_causal=True, scale=0.25),
    ),
    "mask": (
        TOKENS,
        lambda _, x: F.scaled_dot_product_attention(
            *[heads(x)] * 3, attn_mask=(torch.arange(9) % 3 > 0).expand(9, 9)
        ),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_exact(name: str) -> None:
    shape, function = PRODUCTS[name]
    assert_equal_to_pytorch(imported(Lambda(function), shape))


@pytest.mark.parametrize("name", SHARES)
def test_softmax_and_attention_are_within_rounding(name: str) -> None:
    shape, function = SHARES[name]
    source = imported(Lambda(function), shape)
    assert_equal_to_pytorch(source, tolerance=2e-6)
    assert any(isinstance(node.op, Softmax) for node in source.graph.nodes)


@pytest.mark.parametrize("weights", [True, False])
def test_multi_head_attention_is_within_rounding(weights: bool) -> None:
    def attend(parts: Any, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = parts.mha(x, x, x, need_weights=weights)[0]
        return result

    module = Lambda(attend, mha=nn.MultiheadAttention(32, 4, batch_first=True))
    source = imported(module, (1, 9, 32))
    assert_equal_to_pytorch(source, tolerance=2e-4)  # of sums of up to 200
    assert sum(isinstance(node.op, MatMul) for node in source.graph.nodes) == 2


class BinaryAttention(nn.Module):
    """sign(q) sign(k)^T, softmax, few levels, sign(v): BiViT's and BiT's."""

    def __init__(self, levels: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.levels = levels
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (torch.where(heads(part(x)) >= 0, 1.0, -1.0) for part in (self.q, self.k, self.v))
        shares = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1)
        return (self.levels(shares) @ v).transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize(
    ("levels", "products", "device"),
    [
        (lambda a: (a > 0.1).float(), 2, "cpu"),
        (lambda a: (a > 0.1).float(), 2, "gpu"),
        (lambda a: torch.where(a > 0.1, 1.0, -1.0), 2, "cpu"),
        (lambda a: (a > 0.05).float() + (a > 0.1).float() + (a > 0.2).float(), 4, "cpu"),
        (lambda a: a, 1, "cpu"),
    ],
    ids=["0 and 1", "0 and 1, OpenCL", "-1 and 1", "four levels", "real"],
)
def test_binary_attention_is_pytorchs(
    levels: Callable[[torch.Tensor], torch.Tensor], products: int, device: str, tmp_path: Path
) -> None:
    if device == "gpu" and not gpu_devices():
        pytest.skip("no OpenCL device")
    torch.manual_seed(3)
    module = BinaryAttention(levels).eval()
    path = tmp_path / "attention.pbit"
    report = phonebit.convert(module, torch.zeros(1, 9, 32), path)
    binary = [layer for layer in report.layers if layer.kind == "MatMul" and layer.binary]
    assert len(binary) == products
    x = np.random.default_rng(2).standard_normal((1, 9, 32)).astype(np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    network = phonebit.Network.load(path, device=device)
    result = network.forward(x)
    if products > 1:
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


def test_two_quantized_operands_of_any_levels_are_products_of_bits() -> None:
    def levels(_: Any, x: torch.Tensor) -> torch.Tensor:
        a = (heads(x) > 0).float() + (heads(x) > 1.5).float() - 0.5
        return a @ torch.where(heads(x) > -1, 0.75, 0.25).transpose(-1, -2) + 1

    source = imported(Lambda(levels), TOKENS)
    engine = run_pipeline(source.graph).graph
    operands = [node.inputs for node in engine.nodes if isinstance(node.op, MatMul)]
    assert len(operands) == 2
    assert all(engine.types[name].dtype == DataType.BIT for both in operands for name in both)
    x = images(source.graph)
    assert run(engine, x).keys() == run(source.graph, x).keys()
    for name, expected in run(source.graph, x).items():
        np.testing.assert_allclose(run(engine, x)[name], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _, x: torch.einsum("bii->bi", x[:, :, :9]), "diagonal"),
        (lambda _, x: torch.einsum("bnc,bmd->bn", x, x), "one operand alone"),
        (lambda _, x: x.softmax(0), "along the batch"),
        (lambda _, x: torch.matmul(x.transpose(0, 1), x.permute(1, 2, 0)), "mixes the images"),
    ],
)
def test_what_no_operator_expresses_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=message):
        imported(Lambda(function), TOKENS)
