"""Layers, views and broadcasts of PyTorch, each equal to PyTorch to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch_checks import (  # noqa: E402
    Lambda,
    assert_equal_to_pytorch,
    found,
    images,
    imported,
    kinds,
    step_names,
)

from phonebit.converter.importers.torch.importer import open_torch  # noqa: E402
from phonebit.converter.interpreter import run  # noqa: E402
from phonebit.converter.ops import BatchNorm, SelectChannels, Softmax  # noqa: E402
from phonebit.converter.ops.resize_bicubic import ResizeBicubic  # noqa: E402
from phonebit.converter.ops.resize_bilinear import ResizeBilinear  # noqa: E402
from phonebit.errors import UnsupportedLayerError  # noqa: E402
from phonebit.format.records import DataType  # noqa: E402

MAPS = (1, 8, 6, 6)

Case = tuple[Callable[..., Any], dict[str, Any], tuple[int, ...]]
"""A function of a module and its input, the module's parts, the input's shape."""

EXACT: dict[str, Case] = {
    "conv2d": (
        lambda m, x: m.conv(x),
        {"conv": nn.Conv2d(8, 6, (3, 2), (2, 1), (1, 0), (1, 2))},
        MAPS,
    ),
    "conv2d, grouped": (lambda m, x: m.conv(x), {"conv": nn.Conv2d(8, 4, 3, groups=2)}, MAPS),
    "conv2d, depthwise": (lambda m, x: m.conv(x), {"conv": nn.Conv2d(8, 16, 3, groups=8)}, MAPS),
    "conv2d, same": (
        lambda m, x: m.even(x) + m.dilated(x),
        {
            "even": nn.Conv2d(8, 8, 4, padding="same"),
            "dilated": nn.Conv2d(8, 8, 3, padding="same", dilation=2),
        },
        MAPS,
    ),
    "conv1d": (
        lambda m, x: m.fc(F.max_pool1d(m.bn(m.conv(x)), 2).flatten(1)),
        {"conv": nn.Conv1d(3, 8, 3, 2, 1), "bn": nn.BatchNorm1d(8), "fc": nn.Linear(40, 4)},
        (1, 3, 20),
    ),
    "functional conv, computed weights": (
        lambda m, x: F.conv2d(x, m.w.clamp(-0.5, 0.5) * m.s.abs(), padding=1),
        {"w": torch.ones(4, 8, 3, 3), "s": torch.ones(4, 1, 1, 1)},
        MAPS,
    ),
    "linear on pixels": (
        lambda m, x: m.fc(x.permute(0, 2, 3, 1)).relu().permute(0, 3, 1, 2),
        {"fc": nn.Linear(8, 5)},
        MAPS,
    ),
    "linear on tokens": (
        lambda m, x: m.fc(x.flatten(2).transpose(1, 2)).sum(1),
        {"fc": nn.Linear(8, 5)},
        MAPS,
    ),
    "matmul": (lambda m, x: (x @ m.w - 1) @ m.w.t(), {"w": torch.ones(10, 4)}, (1, 10)),
    "batch norm, affine or not": (
        lambda m, x: m.fixed(m.affine(x)),
        {"affine": nn.BatchNorm2d(8), "fixed": nn.BatchNorm2d(8, affine=False)},
        MAPS,
    ),
    "max-pooling": (
        lambda m, x: F.max_pool2d(F.max_pool2d(x, 3, 2, 1), 2, 2, ceil_mode=True),
        {},
        (1, 4, 9, 10),
    ),
    "average pooling": (
        lambda m, x: F.avg_pool2d(x, 2, 1, 1) + F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
        {},
        MAPS,
    ),
    "average pooling, ceil_mode and divisor": (
        lambda m, x: F.avg_pool2d(x, 2, 2, 1, ceil_mode=True, divisor_override=8),
        {},
        (1, 4, 9, 10),
    ),
    "adaptive pooling": (
        lambda m, x: F.adaptive_avg_pool2d(x, (4, 2)) + F.adaptive_max_pool2d(x, (4, 2)),
        {},
        (1, 4, 8, 8),
    ),
    "reductions": (
        lambda m, x: x.mean((2, 3)) + x.sum(3).amax(2) + x.amax((2, 3), keepdim=True).flatten(1),
        {},
        (1, 4, 8, 8),
    ),
    "attention over pixels": (
        lambda m, x: x * m.conv(torch.cat([x.mean(1, keepdim=True), x.amax(1, True)], 1))
        + x.sum(1, keepdim=True),
        {"conv": nn.Conv2d(2, 1, 3, padding=1)},
        MAPS,
    ),
    "padding": (
        lambda m, x: m.conv(F.pad(F.pad(x, (1, 0, 2, 1), value=-1.0), (1, 1))),
        {"conv": nn.Conv2d(8, 4, 3)},
        MAPS,
    ),
    "reflected padding": (lambda m, x: F.pad(x, (1, 2, 2, 1), mode="reflect") * 2, {}, MAPS),
    "crop": (lambda m, x: x[:, :, 1:-1, 2:] * 2, {}, MAPS),
    "channels of zeros": (
        lambda m, x: m.conv(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4)),
        {"conv": nn.Conv2d(8, 16, 3, 2, 1)},
        MAPS,
    ),
    "joined with zeros": (
        lambda m, x: torch.cat([x, torch.zeros(x.shape[0], 4, 6, 6)], 1) * m.w,
        {"w": torch.ones(1, 12, 1, 1)},
        MAPS,
    ),
    "channel split, concat and shuffle": (
        lambda m, x: torch.cat([x.chunk(2, 1)[1], m.conv(x)], 1).view(-1, 2, 6, 6, 6)
        .transpose(1, 2).reshape(-1, 12, 6, 6) * 0.5,
        {"conv": nn.Conv2d(8, 8, 1)},
        MAPS,
    ),
    "concatenation of rows": (
        lambda m, x: torch.cat([x, m.conv(x)], 2),
        {"conv": nn.Conv2d(8, 8, 1)},
        MAPS,
    ),
    "pixel shuffles": (
        lambda m, x: m.conv(F.pixel_unshuffle(x, 2)) + F.pixel_shuffle(x, 2)[:, :, :3, 3:6].flip(1)
        .repeat(1, 2, 1, 1),
        {"conv": nn.Conv2d(32, 4, 1)},
        MAPS,
    ),
    "focus": (
        lambda m, x: m.conv(torch.cat([x[..., i::2, j::2] for i in (0, 1) for j in (0, 1)], 1)),
        {"conv": nn.Conv2d(32, 4, 1)},
        MAPS,
    ),
    "nearest upsampling": (lambda m, x: F.interpolate(x, scale_factor=2) + 1, {}, MAPS),
    "flip": (lambda m, x: torch.flip(x, [3]) + 1, {}, MAPS),
    "flatten, norm, linear": (
        lambda m, x: m.fc(F.relu(m.bn(m.conv(x).flatten(1)))),
        {"conv": nn.Conv2d(8, 4, 3), "bn": nn.BatchNorm1d(64), "fc": nn.Linear(64, 5)},
        MAPS,
    ),
    "flattened output": (
        lambda m, x: torch.flatten(m.conv(x), 1),
        {"conv": nn.Conv2d(8, 4, 3)},
        MAPS,
    ),
    "unflatten": (
        lambda m, x: m.conv(m.fc(x).view(-1, 4, 3, 3)),
        {"fc": nn.Linear(10, 36), "conv": nn.Conv2d(4, 2, 2)},
        (1, 10),
    ),
    "squeeze without an axis": (
        lambda m, x: m.fc(F.adaptive_avg_pool2d(x, 1).squeeze()),
        {"fc": nn.Linear(8, 3)},
        (1, 8, 4, 4),
    ),
    "arithmetic": (
        lambda m, x: 1 - x + (m.conv(x) * 2 - x.sub(m.conv(x), alpha=0.5)) / m.d - (-x) / 4,
        {"conv": nn.Conv2d(8, 8, 1), "d": torch.ones(1, 8, 1, 1)},
        MAPS,
    ),
    "constants for every pixel": (
        lambda m, x: m.conv(x + m.w),
        {"w": torch.ones(1, 8, 6, 6), "conv": nn.Conv2d(8, 2, 3)},
        MAPS,
    ),
    "gate for each channel": (
        lambda m, x: x * m.conv(x.amax((2, 3), keepdim=True)),
        {"conv": nn.Conv2d(8, 8, 1)},
        MAPS,
    ),
    "gate for each channel, expanded": (
        lambda m, x: x * m.fc(x.amax((2, 3))).view(-1, 8, 1, 1).expand_as(x),
        {"fc": nn.Linear(8, 8)},
        MAPS,
    ),
    "gate for each pixel": (
        lambda m, x: m.conv(x) * x,
        {"conv": nn.Conv2d(8, 1, 3, padding=1)},
        MAPS,
    ),
    "gate for each image": (
        lambda m, x: x + m.fc(x.amax((2, 3))).view(-1, 1, 1, 1),
        {"fc": nn.Linear(8, 1)},
        MAPS,
    ),
    "activations": (
        lambda m, x: F.relu6(F.hardtanh(m.prelu(x), -2, 3) + F.leaky_relu(x, 0.25).clamp(min=-1))
        + x.abs().clamp_max(2) - torch.max(x, torch.tensor(0.5)).minimum(torch.ones_like(x)),
        {"prelu": nn.PReLU(8)},
        MAPS,
    ),
    "dropout and copies": (
        lambda m, x: m.conv(F.dropout(x, 0.5, False).contiguous().clone().detach().to(x.dtype)),
        {"conv": nn.Conv2d(8, 2, 1)},
        MAPS,
    ),
    "in place": (
        lambda m, x: m.relu(m.conv(x).add_(1).mul_(m.conv(x))),
        {"conv": nn.Conv2d(8, 2, 1), "relu": nn.ReLU(inplace=True)},
        MAPS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_layers_equal_pytorch_to_the_last_bit(name: str) -> None:
    function, parts, shape = EXACT[name]
    module = Lambda(function, **parts).eval()
    source = imported(module, shape)
    inputs = images(source.graph, count=1)
    assert_equal_to_pytorch(source, inputs)
    (maps,) = inputs.values()
    with torch.no_grad():
        maps = np.moveaxis(maps, 3, 1) if len(shape) == 4 else maps
        expected = module(torch.from_numpy(maps.reshape(shape))).numpy()
    (result,) = run(source.graph, inputs).values()
    if expected.ndim == 4:
        result = np.moveaxis(result, 3, 1)
    np.testing.assert_array_equal(result.reshape(expected.shape), expected)


@pytest.mark.parametrize("function", ["sigmoid", "tanh", "silu", "hardswish", "hardsigmoid"])
def test_smooth_activations_are_within_rounding(function: str) -> None:
    module = Lambda(lambda _, x: getattr(F, function)(x) if function != "tanh" else x.tanh())
    assert_equal_to_pytorch(imported(module, MAPS), tolerance=1e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_both_forms_of_gelu_are_within_rounding(approximate: str) -> None:
    source = imported(Lambda(lambda _, x: F.gelu(x, approximate=approximate)), MAPS)
    assert_equal_to_pytorch(source, tolerance=1e-6)
    assert step_names(source.graph) == ["Gelu"]


@pytest.mark.parametrize(
    ("mode", "operator"), [("bilinear", ResizeBilinear), ("bicubic", ResizeBicubic)]
)
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("how", [{"scale_factor": 2}, {"size": (9, 4)}, {"scale_factor": (0.5, 3)}])
def test_resizing_is_within_rounding(
    how: dict[str, object], corners: bool, mode: str, operator: type[Any]
) -> None:
    def resize(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, mode=mode, align_corners=corners, **how)

    source = imported(Lambda(resize), MAPS)
    # Places are rounded to 2e-7; from pixel to pixel the cubic rises by up to 8 times 1.5.
    assert_equal_to_pytorch(source, tolerance=2e-6 if mode == "bilinear" else 1e-5)
    assert found(source.graph, operator) != []


def test_a_scale_factor_that_is_not_the_ratio_of_the_sizes_is_refused() -> None:
    module = Lambda(lambda _, x: F.interpolate(x, scale_factor=1.4, mode="bilinear"))
    with pytest.raises(UnsupportedLayerError, match=r"scale_factor=1.4 .* give size="):
        imported(module, MAPS)


@pytest.mark.parametrize("log", [False, True])
def test_softmax_is_along_the_channels_of_maps_and_features(log: bool) -> None:
    function = F.log_softmax if log else F.softmax
    module = Lambda(lambda _, x: (function(x, dim=1), function(x.amax((2, 3)), dim=-1)))
    source = imported(module, MAPS)
    assert_equal_to_pytorch(source, tolerance=1e-6)
    assert [op.log for op in found(source.graph, Softmax)] == [log, log]


def test_batch_norm_has_pytorchs_arithmetic_to_the_last_bit_on_any_numbers() -> None:
    module = Lambda(lambda m, x: m.flat(m.maps(x).flatten(1)), maps=nn.BatchNorm2d(8),
                    flat=nn.BatchNorm1d(288))  # fmt: skip
    rng = np.random.default_rng(1)
    for norm in (module.maps, module.flat):
        for tensor in (norm.weight.data, norm.bias.data, norm.running_mean):
            tensor.copy_(torch.from_numpy(rng.normal(size=tensor.shape)))
        norm.running_var.copy_(torch.from_numpy(rng.uniform(0.1, 3, norm.running_var.shape)))
    source = imported(module, MAPS)
    maps = rng.normal(size=(3, 6, 6, 8)).astype(np.float32)
    assert_equal_to_pytorch(source, {source.graph.inputs[0]: maps})
    assert all(op.arithmetic == "torch" for op in found(source.graph, BatchNorm))


def test_no_node_moves_channels_that_a_kernel_can_take_as_they_are() -> None:
    def shuffled(m: Any, x: Any) -> Any:
        x = F.channel_shuffle(m.first(x), 4)
        return m.dense(F.channel_shuffle(m.depthwise(x), 2))

    parts = {
        "first": nn.Conv2d(8, 8, 1),
        "depthwise": nn.Conv2d(8, 8, 3, groups=8),
        "dense": nn.Conv2d(8, 4, 1),
    }
    source = imported(Lambda(shuffled, **parts), MAPS)
    assert kinds(source.graph) == ["Conv2D"] * 3
    assert_equal_to_pytorch(source)


def test_flattening_permutes_the_weights_instead_of_the_map() -> None:
    module = Lambda(lambda m, x: m.fc(torch.relu(x.flatten(1))), fc=nn.Linear(288, 3))
    source = imported(module, MAPS)
    assert kinds(source.graph) == ["Elementwise", "Reshape", "Conv2D"]
    assert_equal_to_pytorch(source)


def test_every_second_pixel_is_a_pool_of_one_pixel_and_zero_channels_a_selection() -> None:
    module = Lambda(lambda _, x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4)) + 1)
    source = imported(module, MAPS)
    assert kinds(source.graph) == ["MaxPool2D", "SelectChannels", "Elementwise"]
    indices = found(source.graph, SelectChannels)[0].indices.tolist()
    assert indices == [-1] * 4 + list(range(8)) + [-1] * 4
    assert_equal_to_pytorch(source)


def test_nodes_are_called_like_their_modules_and_further_calls_are_numbered() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 1)
            self.act = nn.PReLU(8)

        def forward(self, x: Any) -> Any:
            return self.act(self.conv(x)) + x

    module = Lambda(lambda m, x: torch.relu(m.b(m.b(x)) * 2), b=nn.Sequential(Block()))
    graph = imported(module, MAPS).graph
    names = [node.name for node in graph.nodes if node.inputs]
    first = ["b.0.conv", "b.0.act", "b.0/add"]
    assert names == [*first, "b.0.conv:1", "b.0.act:1", "b.0:1/add", "mul", "relu"]
    assert graph.outputs == ["relu"]


def test_several_inputs_and_outputs_keep_their_order() -> None:
    module = Lambda(lambda m, x, y: (m.conv(y) + x, x.amax((2, 3)), y), conv=nn.Conv2d(8, 8, 1))
    source = imported(module, MAPS, MAPS)
    inputs = images(source.graph)
    assert_equal_to_pytorch(source, inputs)
    results = run(source.graph, inputs)
    assert list(results) == ["add", "amax", source.graph.inputs[1]]


def test_a_byte_input_becomes_numbers_before_anything_else() -> None:
    module = Lambda(lambda m, x: m.conv(x.float() / 4 - 8), conv=nn.Conv2d(3, 4, 3))
    source = open_torch(module, example_input=torch.zeros(1, 3, 5, 5, dtype=torch.uint8))
    (name,) = source.graph.inputs
    assert source.graph.types[name].dtype == DataType.U8
    assert kinds(source.graph)[0] == "Dequantize"
    maps = np.random.default_rng(0).integers(0, 256, (2, 5, 5, 3)).astype(np.uint8)
    assert_equal_to_pytorch(source, {name: maps})


def test_a_program_with_a_batch_or_a_dynamic_one_runs_any_number_of_images() -> None:
    module = Lambda(
        lambda m, x: m.fc(m.conv(x).sign().view(x.size(0), -1)),
        conv=nn.Conv2d(3, 4, 3, 2),
        fc=nn.Linear(16, 5),
    ).eval()
    example = (torch.zeros(2, 3, 5, 5),)
    batch = {"inputs": ({0: torch.export.Dim("batch")},)}
    plain = imported(module, (1, 3, 5, 5)).graph
    for shapes in (None, batch):
        exported = torch.export.export(module, example, dynamic_shapes=shapes, strict=False)
        source = open_torch(exported)
        assert [node.name for node in source.graph.nodes] == [node.name for node in plain.nodes]
        assert source.graph.types == plain.types
        assert_equal_to_pytorch(source, images(source.graph, count=5))


def test_core_aten_programs_give_the_same_graph() -> None:
    module = Lambda(
        lambda m, x: m.fc(F.dropout(m.bn(m.conv(x)), 0.3, False).relu().mean((2, 3))),
        conv=nn.Conv2d(8, 8, 3),
        bn=nn.BatchNorm2d(8),
        fc=nn.Linear(8, 2),
    ).eval()
    exported = torch.export.export(module, (torch.zeros(MAPS),), strict=False)
    one, other = open_torch(exported).graph, open_torch(exported.run_decompositions()).graph
    assert kinds(one) == kinds(other)
    assert_equal_to_pytorch(open_torch(exported.run_decompositions()))


def test_a_module_keeps_its_mode_and_its_parameters() -> None:
    module = Lambda(lambda m, x: m.drop(m.bn(x)), bn=nn.BatchNorm2d(8), drop=nn.Dropout()).train()
    module.bn.eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    imported(module, MAPS)
    assert module.training and module.drop.training and not module.bn.training
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
