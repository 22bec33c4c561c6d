"""Networks that do not classify images, exported and converted, against PyTorch itself.

As ``test_torch_networks``: with exactly representable numbers results are equal to the last bit.
Where a layer norm, a softmax or trained weights make that impossible, each layer is judged on
PyTorch's values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from phonebit import Network  # noqa: E402
from phonebit.converter.convert import ConversionReport, convert_graph  # noqa: E402
from phonebit.converter.importers.torch.export import export_module  # noqa: E402
from phonebit.converter.importers.torch.functional import functional  # noqa: E402
from phonebit.converter.importers.torch.importer import import_torch  # noqa: E402
from phonebit.verification import verify  # noqa: E402
from support.torch_networks import TASKS, channels_last  # noqa: E402
from support.torch_networks.bisrnet import bisrnet  # noqa: E402

SEED = 1
CHECKPOINT = Path(__file__).parents[3] / "shared" / "checkpoints" / "bisrnet_simulation.pth"


def program_of(module: Any, inputs: Any) -> Any:
    """The module, exported once for conversion and verification."""
    return functional(export_module(module, (inputs[:1],)))


def converted(program: Any, file: Path, zeros: Any) -> tuple[Network, ConversionReport]:
    """An exported program as a network on the CPU; what it trains as binary must become so."""
    conversion = convert_graph(import_torch(program), strict=True, check=False, zeros=zeros)
    file.write_bytes(conversion.content)
    return Network.load(file, "cpu"), conversion.report


@pytest.mark.parametrize("name", ["binary_unet", "tc_resnet", "bipointnet", "binary_vit"])
def test_dyadic_results_equal_pytorch_to_the_last_bit(name: str, tmp_path: Path) -> None:
    entry = TASKS[name]
    module = entry.build("dyadic", SEED, small=True)
    inputs = entry.inputs("dyadic", 3, SEED + 1, small=True)
    with torch.no_grad():
        expected = module(inputs).numpy()
    network, report = converted(program_of(module, inputs), tmp_path / "network.pbit", "exact")
    result = network.forward(channels_last(inputs))
    assert len(np.unique(expected)) > len(inputs), "results that are all alike show nothing"
    np.testing.assert_array_equal(result, channels_last(torch.from_numpy(expected)))
    assert report.binary_mac_share >= entry.small_binary_share


def assert_layers_equal(module: Any, inputs: Any, file: Path, zeros: Any, share: float) -> None:
    """Each layer is judged on PyTorch's values; nothing but a float tie changes a result."""
    program = program_of(module, inputs)
    network, report = converted(program, file, zeros)
    checked = verify(program, network, channels_last(inputs), layout="nhwc")
    assert checked.reference == "framework", checked.reason
    assert [layer.name for layer in checked.layers if layer.mismatch] == []
    assert checked.end_to_end.unexplained == []
    assert report.binary_mac_share >= share


@pytest.mark.parametrize("weights", ["random", "the authors'"])
def test_bisrnet_layers_equal_pytorch(weights: str, tmp_path: Path) -> None:
    entry = TASKS["bisrnet"]
    if weights == "random":
        module = entry.build("random", SEED, small=True)
        inputs = entry.inputs("random", 2, SEED + 1, small=True)
    else:
        if not CHECKPOINT.is_file():
            pytest.skip(f"{CHECKPOINT.name} is absent: it lies in the project's shared folder")
        module = bisrnet().eval()
        module.load_state_dict(torch.load(CHECKPOINT, map_location="cpu", weights_only=True))
        generator = torch.Generator().manual_seed(SEED)
        measured, mask = torch.rand(2, 2, 28, 16, 16, generator=generator)
        inputs = torch.cat([measured, (mask > 0.5).float()], dim=1)
    assert_layers_equal(module, inputs, tmp_path / "n.pbit", "auto", entry.small_binary_share)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_brevitas_layers_equal_pytorch(bits: int, tmp_path: Path) -> None:
    pytest.importorskip("brevitas", reason="Brevitas is not installed: pip install brevitas")
    entry = TASKS[f"brevitas_live_w1a{bits}"]
    module = entry.build("random", SEED, small=True)
    inputs = entry.inputs("random", 2, SEED + 1, small=True)
    assert_layers_equal(module, inputs, tmp_path / "n.pbit", "auto", entry.small_binary_share)
