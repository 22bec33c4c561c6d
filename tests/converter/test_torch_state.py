"""Modules that branch on numbers that they keep, or assign to ``.data``: state of training code."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch.ao.quantization import (  # noqa: E402
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_fused_per_channel_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    disable_fake_quant,
    disable_observer,
)
from torch_checks import Lambda, assert_same_results, kinds  # noqa: E402

from phonebit.converter.importers.torch.importer import import_torch  # noqa: E402
from phonebit.errors import ConversionError  # noqa: E402

pytestmark = pytest.mark.torch

SHAPE = (1, 3, 8, 8)


def maps(scale: float = 2.0) -> Tensor:
    return torch.randn(2, *SHAPE[1:], generator=torch.Generator().manual_seed(3)) * scale


class Lsq(nn.Module):
    """LSQ as its authors and their followers write it, with a step that the first batch sets."""

    def __init__(self, bits: Any, initialised: Any) -> None:
        super().__init__()
        self.bits = bits
        self.register_buffer("init_state", torch.as_tensor(initialised))
        self.step = nn.Parameter(torch.tensor(0.25))

    def forward(self, x: Tensor) -> Tensor:
        if self.init_state == 0:
            self.step.data.copy_(2 * x.abs().mean() / 3)
            self.init_state.fill_(1)
        high = 2 ** int(self.bits) - 1
        scaled = torch.clamp(x / self.step, 0, high)
        return ((scaled.round() - scaled).detach() + scaled) * self.step


@pytest.mark.parametrize("initialised", [1, [1.0], True])
@pytest.mark.parametrize("kind", ["buffer", "parameter", "attribute", "number"])
def test_branches_on_numbers_of_the_module_go_the_way_of_the_checkpoint(
    kind: str, initialised: Any
) -> None:
    quantizer = Lsq(2, initialised)
    if kind == "buffer":
        del quantizer.bits
        quantizer.register_buffer("bits", torch.tensor([2], dtype=torch.int32))
    elif kind != "number":
        tensor = torch.tensor(2.0)
        quantizer.bits = nn.Parameter(tensor, False) if kind == "parameter" else tensor
    module = nn.Sequential(nn.Conv2d(3, 4, 3), quantizer, nn.Conv2d(4, 2, 3))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    graph = assert_same_results(module, maps(), tolerance=1e-5)
    assert kinds(graph) == ["Conv2D", "Quantize", "Conv2D"]
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert isinstance(quantizer.step, nn.Parameter) and "init_state" in quantizer._buffers


def test_numbers_computed_of_the_modules_numbers_are_known_too() -> None:
    def forward(module: Any, x: Tensor) -> Tensor:
        module.count.add_(1)
        limit = (module.count * 2 + module.shift).item()
        return x.clamp(-limit, limit) if bool(module.count == 2) else x

    module = Lambda(forward)
    module.register_buffer("count", torch.tensor(1))
    module.shift = torch.tensor(-3.0)
    graph = import_torch(module, input_shape=SHAPE)
    (clamp,) = graph.nodes[1].op.epilogue.steps
    assert (clamp.low, clamp.high) == (-1.0, 1.0)
    assert module.count == 1


def test_state_that_the_first_batch_sets_is_no_constant() -> None:
    with pytest.raises(ConversionError) as caught:
        import_torch(nn.Sequential(nn.Conv2d(3, 4, 3), Lsq(2, 0)), input_shape=SHAPE)
    assert "computes '1.step' from its input" in str(caught.value)
    assert "train or calibrate the module first" in str(caught.value)


def test_assignments_to_data_are_followed_by_the_tensor_itself() -> None:
    """What has the same tensor sees its new numbers; a view made before keeps the old ones."""

    def forward(module: Any, x: Tensor) -> Any:
        y = module.first(x)
        same, view = y, y[:, 1:]
        y.data = torch.where(y.data >= 0, 1.0, -1.0)
        result = module.second(y)
        result.data = result.data.sign()
        return result, same, view, same * 2

    module = Lambda(forward, first=nn.Conv2d(3, 4, 3), second=nn.Conv2d(4, 2, 3))
    assert_same_results(module, maps(), tolerance=1e-5)


class BinaryLinear(nn.Linear):
    """Both operands are overwritten, as in the BinaryNet that most PyTorch code was copied from."""

    def forward(self, x: Tensor) -> Tensor:
        x.data = x.data.sign()
        if not hasattr(self.weight, "org"):
            self.weight.org = self.weight.data.clone()
        self.weight.data = self.weight.org.sign()
        return F.linear(x, self.weight, self.bias)


def test_a_layer_that_overwrites_both_operands_is_binary() -> None:
    layers = (nn.BatchNorm1d(16), nn.Hardtanh(inplace=True), BinaryLinear(16, 4))
    module = nn.Sequential(nn.Linear(8, 16), *layers).eval()
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(3))
    graph = assert_same_results(module, x, tolerance=1e-5)
    assert {"Quantize", "Sign"} & set(kinds(graph))


FAKE_QUANTIZERS = {
    "8 bits": lambda: FakeQuantize(),
    "fused": lambda: FusedMovingAvgObsFakeQuantize(),
    "4 bits": lambda: FakeQuantize(quant_min=0, quant_max=15),
    "signed": lambda: FakeQuantize(quant_min=-4, quant_max=3, dtype=torch.qint8),
    "symmetric": lambda: FakeQuantize(
        quant_min=-8, quant_max=7, dtype=torch.qint8, qscheme=torch.per_tensor_symmetric
    ),
}


@pytest.mark.parametrize("name", FAKE_QUANTIZERS)
def test_fake_quantizers_of_activations_have_pytorchs_values(name: str) -> None:
    module = nn.Sequential(FAKE_QUANTIZERS[name](), nn.Conv2d(3, 2, 1))
    module(maps())
    module.apply(disable_observer).eval()
    scale, zero = module[0].scale, module[0].zero_point
    near = (torch.arange(-300, 300).view(2, 3, 10, 10) / 2 - zero) * scale  # and ties
    assert_same_results(module, near, tolerance=1e-5)
    assert_same_results(module[0], maps(3.0))


@pytest.mark.parametrize("axis", [1, 2])
def test_a_scale_for_each_channel_is_one(axis: int) -> None:
    scales, zeros = torch.tensor([0.1, 0.25, 0.7]), torch.tensor([0, 3, 7], dtype=torch.int32)
    module = Lambda(
        lambda m, x: torch.fake_quantize_per_channel_affine(x[:, :, :3], scales, zeros, axis, 0, 15)
    )
    assert_same_results(module, maps())


@pytest.mark.parametrize(
    "make", [default_per_channel_weight_fake_quant, default_fused_per_channel_wt_fake_quant]
)
def test_fake_quantizers_of_weights_are_constants(make: Any) -> None:
    module = Lambda(
        lambda m, x: F.conv2d(x, m.quantizer(m.conv.weight)),
        conv=nn.Conv2d(3, 4, 3),
        quantizer=make(),
    )
    module(maps())
    graph = assert_same_results(module.apply(disable_observer), maps(), tolerance=1e-5)
    assert kinds(graph) == ["Conv2D"]


@pytest.mark.parametrize("make", [FakeQuantize, FusedMovingAvgObsFakeQuantize])
def test_observers_must_be_off_and_quantizers_may_be(make: Any) -> None:
    module = nn.Sequential(nn.Conv2d(3, 2, 1), make())
    module(maps())
    with pytest.raises(ConversionError, match="disable_observer"):
        import_torch(module.eval(), input_shape=SHAPE)
    module.apply(disable_observer).apply(disable_fake_quant)
    assert kinds(assert_same_results(module, maps(), tolerance=1e-5)) == ["Conv2D"]


def test_fake_quantizers_in_exported_programs_are_read(tmp_path: Any) -> None:
    module = Lambda(lambda m, x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15))
    exported = torch.export.export(module, (maps(),), strict=False)
    torch.export.save(exported, tmp_path / "net.pt2")
    assert kinds(import_torch(tmp_path / "net.pt2")) == kinds(assert_same_results(module, maps()))
