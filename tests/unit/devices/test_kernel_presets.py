"""The preset "paper": its kernels run by its rules, and compute the bits of the usual ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit import InputError, Network
from phonebit.converter.convert import convert_graph
from phonebit.models.networks import INPUT_RANGE
from phonebit.models.networks.builder import NetworkBuilder
from phonebit.network.random_inputs import random_inputs
from support.cli_process import Cli
from support.opencl_device import check_warnings

KERNELS = {
    "first": "conv2d_u8_planes",
    "wide": "bconv2d_byte GRANULARITY=1024 COMPARE=1",
    "packed": "bconv2d_accumulate",
    "narrow": "bconv2d_byte GRANULARITY=1024 COMPARE=1",
    "last": "conv2d_f32_dot",
}
"""Of the layers; "packed" reads more than 256 channels, "narrow" 40."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = NetworkBuilder("preset", "binary")
    x = net.image(9, 8)
    for name, filters in zip(KERNELS, (64, 288, 40, 75), strict=False):
        x = net.batch_norm(f"{name}/norm", net.conv(name, x, filters, 3, padding=1))
        x = net.activate(f"{name}/sign", x)
    graph = net.done(net.dense("last", x, 10, real=True, bias=True))
    path = tmp_path_factory.mktemp("preset") / "net.pbit"
    path.write_bytes(convert_graph(graph, input_dtype="u8", input_range=INPUT_RANGE).content)
    return path


def test_the_papers_forms_compute_the_same_bits(
    file: Path, gpu: str, recwarn: pytest.WarningsRecorder
) -> None:
    usual = Network.load(file, device="cpu")
    inputs = random_inputs(usual.inputs, 3)
    expected = usual.activations(inputs)
    network = Network.load(file, device=gpu, kernels="paper", precision="f16")
    kernels = {layer.name: str(layer.kernel) for layer in network.layers}
    for name, kernel in KERNELS.items():
        assert kernels[name].startswith(kernel)
    for name, got in network.activations(inputs).items():
        if name == "last":
            np.testing.assert_allclose(got, expected[name], rtol=1e-3, atol=1e-3)
        else:
            np.testing.assert_array_equal(got, expected[name], err_msg=name)
    programs = dict(network.programs(list(kernels).index("wide")))
    assert "#define GRANULARITY 64\n" in programs["bconv2d_byte"]  # of 64 channels
    check_warnings([str(entry.message) for entry in recwarn])


def test_presets_are_for_opencl_devices(file: Path, cli: Cli) -> None:
    with pytest.raises(InputError, match="is for GPUs"):
        Network.load(file, device="cpu", kernels="paper")
    with pytest.raises(InputError, match="unknown kernels"):
        Network.load(file, device="cpu", kernels="papers")  # type: ignore[arg-type]
    refused = cli.refused("bench", file, "--device", "cpu", "--kernels", "paper")
    assert "use device 'gpu'" in refused
