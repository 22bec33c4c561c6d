"""PyTorch's exports to ONNX give the networks that PyTorch computes, and binary layers of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.onnx_models import assert_equal_to_onnx, kinds

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch_checks import Lambda  # noqa: E402

from phonebit.converter.convert import convert_graph  # noqa: E402
from phonebit.converter.importers.onnx.importer import OnnxSource, open_onnx  # noqa: E402
from phonebit.converter.interpreter import run  # noqa: E402
from phonebit.converter.ir import Graph  # noqa: E402


def exported(module: nn.Module, shape: tuple[int, ...], path: Path, opset: int) -> OnnxSource:
    """By the exporter that traces, which needs no package but PyTorch; the batch is open."""
    torch.onnx.export(
        module.eval(),
        (torch.zeros(shape),),
        str(path),
        opset_version=opset,
        dynamo=False,
        input_names=["x"],
        dynamic_axes={"x": {0: "batch"}},
    )
    return open_onnx(path)


def binary_layers(engine: Graph) -> int:
    return sum(kind.startswith("Binary") for kind in kinds(engine))


def binary_conv(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    """A straight-through sign, and a kernel of signs times a power of two."""
    limited = x.clamp(-1, 1)
    bits = torch.sign(x).detach() - limited.detach() + limited
    return F.conv2d(bits, 0.5 * torch.sign(weight), stride=stride, padding=1)


def block(self: Any, x: Tensor) -> Tensor:
    """Bi-Real's: a shortcut around each convolution."""
    y = self.bn(binary_conv(x, self.weight))
    y = self.act(y + x)
    y = self.bn2(binary_conv(y, self.weight2, 2)) + F.avg_pool2d(y, 2)
    return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


def block_of_layers() -> nn.Module:
    weights = [nn.Parameter(torch.zeros(8, 8, 3, 3)) for _ in range(2)]
    return Lambda(
        block,
        bn=nn.BatchNorm2d(8),
        bn2=nn.BatchNorm2d(8),
        act=nn.PReLU(8),
        fc=nn.Linear(8, 4),
        weight=weights[0],
        weight2=weights[1],
    )


def mixed(self: Any, x: Tensor) -> Tensor:
    """Chunks, joins, shuffles, pads and maps of other sizes."""
    first, second = self.conv(F.pad(x, (1, 0, 2, 1))).chunk(2, 1)
    y = torch.cat([second, first.relu(), first[:, :2]], 1)
    y = F.interpolate(y[:, :, ::2, 1:], scale_factor=2, mode="nearest")
    y = F.pixel_shuffle(F.max_pool2d(y, 3, 2, 1)[:, :8], 2)
    return self.last(F.hardtanh(y).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def mixed_layers() -> nn.Module:
    return Lambda(mixed, conv=nn.Conv2d(4, 8, 3), last=nn.Linear(2, 3))


def quantized(self: Any, x: Tensor) -> Tensor:
    """A 2-bit quantizer, depthwise signs, and a comparison."""
    y = torch.round(self.bn(self.conv(x)).clamp(0, 3) * 1) / 1
    y = F.conv2d(y, torch.where(self.weight >= 0, 1.0, -1.0), groups=8)
    return self.fc(((y > 1).float() * 2 - 1).flatten(1))


def quantized_layers() -> nn.Module:
    return Lambda(
        quantized,
        conv=nn.Conv2d(4, 8, 3),
        bn=nn.BatchNorm2d(8),
        weight=torch.zeros(8, 1, 3, 3),
        fc=nn.Linear(8 * 4 * 4, 3),
    )


NETWORKS = {"block": block_of_layers, "mixed": mixed_layers, "quantized": quantized_layers}


@pytest.mark.parametrize("opset", range(11, 21))
@pytest.mark.parametrize("name", NETWORKS)
def test_exports_equal_pytorch_to_the_last_bit(name: str, opset: int, tmp_path: Path) -> None:
    module = NETWORKS[name]()
    source = exported(module, (1, 4 if name != "block" else 8, 8, 8), tmp_path / "net.onnx", opset)
    graph = assert_equal_to_onnx(source)
    channels = graph.types["x"].shape[2]
    rng = np.random.default_rng(5)
    images = (rng.integers(-8, 9, (3, 8, 8, channels)) / 2).astype(np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(images).permute(0, 3, 1, 2)).numpy()
    (result,) = run(graph, {"x": images}).values()
    np.testing.assert_array_equal(np.moveaxis(result, 3, 1).reshape(expected.shape), expected)


@pytest.mark.parametrize(("name", "layers"), [("block", 2), ("quantized", 2)])
def test_exports_are_binary_where_the_network_is(name: str, layers: int, tmp_path: Path) -> None:
    module = NETWORKS[name]()
    shape = (1, 4 if name != "block" else 8, 8, 8)
    source = exported(module, shape, tmp_path / "net.onnx", 17)
    engine = convert_graph(source.graph, strict=True).engine
    assert binary_layers(engine) == layers  # depthwise layers are one for each plane


def exported_program(module: nn.Module, path: Path, opset: int) -> OnnxSource:
    """By the exporter of programs, which takes opsets from 18 on."""
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: pip install onnxscript")
    images = (torch.zeros(1, 8, 8, 8),)
    torch.onnx.export(
        module.eval(), images, str(path), opset_version=opset, dynamo=True, verbose=False
    )
    return open_onnx(path)


@pytest.mark.parametrize("opset", range(18, 23))
def test_the_exporter_of_programs_writes_what_is_read(opset: int, tmp_path: Path) -> None:
    source = exported_program(block_of_layers(), tmp_path / "net.onnx", opset)
    assert source.model.opset_import[0].version == opset
    graph = assert_equal_to_onnx(source)
    assert binary_layers(convert_graph(graph).engine) == 2


@pytest.mark.parametrize("size", [3, 5, (5, 8)], ids=str)
def test_exported_adaptive_pools_may_have_windows_of_any_size(size: Any, tmp_path: Path) -> None:
    module = Lambda(lambda m, x: F.adaptive_avg_pool2d(m.conv(x), size), conv=nn.Conv2d(8, 4, 1))
    source = exported_program(module, tmp_path / "net.onnx", 18)
    assert_equal_to_onnx(source, tolerance=1e-5)
