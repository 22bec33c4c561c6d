"""Published PyTorch networks, exported and converted, against PyTorch itself.

With exactly representable numbers float32 arithmetic is exact, so results must be equal to the last
bit, exact zeros before a sign included, on the CPU and on OpenCL. With random numbers each layer is
judged alone, fed with PyTorch's own values, and the argmax end to end. Small versions run by
default where PyTorch is installed; the networks as published are marked slow.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.opencl_device import device_name, pyopencl_device

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

import phonebit  # noqa: E402
from phonebit import Network  # noqa: E402
from phonebit.converter.convert import Conversion, convert_graph  # noqa: E402
from phonebit.converter.importers.torch.export import export_module  # noqa: E402
from phonebit.converter.importers.torch.functional import functional  # noqa: E402
from phonebit.converter.importers.torch.importer import import_torch  # noqa: E402
from phonebit.converter.passes.decide_zeros import Zeros  # noqa: E402
from phonebit.verification import VerificationReport, verify  # noqa: E402
from support.torch_networks import NETWORKS, Kind, adabin  # noqa: E402
from support.torch_networks.statistics import exact_results  # noqa: E402

SEED = 1
INPUTS = 4
EXACT_BY_DEFAULT = (
    "hubara_vgg_small",
    "xnornet_alexnet",
    "birealnet18",
    "reactnet_mobilenet",
    "irnet_resnet20",
    "recu_resnet18",
    "adabin_resnet20",
    "brevitas_cnv_w1a2",
    "bitorch_resnet_e18",
    "mnist_mlp",
    "binary_shufflenet",
    "bnext_like_resnet18",
)
LAYERS_BY_DEFAULT = ("birealnet18", "adabin_resnet20", "brevitas_cnv_w1a2", "binary_shufflenet")
OPENCL_BY_DEFAULT = ("irnet_resnet20", "mnist_mlp", "bitorch_resnet_e18")
"""Whose small versions run by default. Exporting takes PyTorch seconds each, and so does compiling
their OpenCL kernels on a cold cache."""
MANY_KERNELS = (
    "reactnet_mobilenet",
    "binary_googlenet",
    "binary_shufflenet",
    "real_to_binary_resnet18",
    "bnext_like_resnet18",
)
"""Whose published versions have layers of so many shapes that compiling takes up to a minute."""
CHECKPOINT = Path(__file__).parents[3] / "shared" / "checkpoints" / "adabin_resnet20_cifar10.th"
CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_STD = (0.2023, 0.1994, 0.2010)


@dataclass
class Subject:
    """A network with one kind of numbers; it is converted when the first test asks."""

    name: str
    small: bool
    kind: Kind

    @cached_property
    def module(self) -> Any:
        return NETWORKS[self.name].build(self.kind, SEED, self.small)

    @cached_property
    def inputs(self) -> Any:
        """Images (N, C, H, W) other than those of the calibration."""
        return NETWORKS[self.name].inputs(self.kind, INPUTS, SEED + 1, self.small)

    @cached_property
    def expected(self) -> Any:
        """What PyTorch computes."""
        with torch.no_grad():
            return self.module(self.inputs).numpy()

    @cached_property
    def program(self) -> Any:
        """The module, exported once for all tests; functional, as the importer needs it."""
        return functional(export_module(self.module, (self.inputs[:1],)))

    @cached_property
    def conversion(self) -> Conversion:
        """Strict: a layer that PyTorch trains as binary and that does not become so is an error."""
        graph = import_torch(self.program)
        zeros: Zeros = "exact" if self.kind == "dyadic" else "auto"
        return convert_graph(graph, strict=True, check=self.small, zeros=zeros)

    def load(self, folder: Path, device: str) -> Network:
        """The converted network on a device."""
        path = folder / "network.pbit"
        path.write_bytes(self.conversion.content)
        return Network.load(path, device)


def nhwc(x: Any) -> Any:
    """A PyTorch image batch as PhoneBit reads it."""
    return np.ascontiguousarray(x.numpy().transpose(0, 2, 3, 1))


def cases(by_default: Iterable[str]) -> list[Any]:
    """Every network, small and as published; all but the small ones of these names are slow."""
    return [
        pytest.param(
            (name, small),
            id=f"{name}-small" if small else name,
            marks=() if small and name in by_default else pytest.mark.slow,
        )
        for small in (True, False)
        for name in NETWORKS
    ]


@pytest.fixture(scope="module", params=cases(EXACT_BY_DEFAULT))
def dyadic(request: pytest.FixtureRequest) -> Subject:
    """Each network with numbers that make float32 arithmetic exact."""
    return Subject(*request.param, "dyadic")


def layer_cases() -> list[Any]:
    """Small ones, and three as published: the dyadic tests have all widths, and AdaBin's network is
    judged with its authors' weights."""
    published = {"birealnet18", "brevitas_cnv_w1a2", "binary_shufflenet"}
    return [c for c in cases(LAYERS_BY_DEFAULT) if c.id not in NETWORKS or c.id in published]


@pytest.fixture(scope="module", params=layer_cases())
def random(request: pytest.FixtureRequest) -> Subject:
    """Each network with random numbers as training would leave them."""
    return Subject(*request.param, "random")


def test_dyadic_arithmetic_of_the_definition_is_exact(dyadic: Subject) -> None:
    exact = exact_results(dyadic.module, dyadic.inputs).numpy()
    assert np.array_equal(dyadic.expected, exact)
    assert len(np.unique(exact)) > INPUTS, "results that are all alike show nothing"


def test_dyadic_results_on_the_cpu_equal_pytorch_to_the_last_bit(
    dyadic: Subject, tmp_path: Path
) -> None:
    network = dyadic.load(tmp_path, "cpu")
    np.testing.assert_array_equal(network.forward(nhwc(dyadic.inputs)), dyadic.expected)


def opencl_cases() -> list[Any]:
    """Each once: small where that one runs by default or the published one has many kernels. Both
    have the same kinds of layers in other widths, which tests/opencl has for every kernel."""
    small = {*OPENCL_BY_DEFAULT, *MANY_KERNELS}
    kept = {f"{name}-small" if name in small else name for name in NETWORKS}
    return [case for case in cases(OPENCL_BY_DEFAULT) if case.id in kept]


@pytest.mark.parametrize("dyadic", opencl_cases(), indirect=True)
def test_dyadic_results_on_opencl_equal_pytorch_to_the_last_bit(
    dyadic: Subject, tmp_path: Path
) -> None:
    network = dyadic.load(tmp_path, device_name(pyopencl_device()))
    np.testing.assert_array_equal(network.forward(nhwc(dyadic.inputs)), dyadic.expected)


def test_each_layer_alone_is_within_rounding_of_pytorch(random: Subject, tmp_path: Path) -> None:
    network = random.load(tmp_path, "cpu")
    report = verify(random.program, network, nhwc(random.inputs), layout="nhwc")
    assert report.reference == "framework", report.reason
    assert_passed(report)


def test_enough_of_the_work_becomes_binary(random: Subject) -> None:
    entry, report = NETWORKS[random.name], random.conversion.report
    assert [layer.name for layer in report.missed] == []
    share = entry.small_binary_share if random.small else entry.binary_share
    assert report.binary_mac_share >= share


def assert_passed(report: VerificationReport) -> None:
    """No layer is a mismatch; every other argmax has a float tie or an exact zero as its cause.

    End to end the rounding of many real-valued layers adds up, so values have no tolerance there.
    """
    mismatch = [
        f"{layer.name}: {layer.max_abs_difference:.3g} at {layer.worst or layer.worst_bit}"
        for layer in report.layers
        if layer.mismatch
    ]
    assert mismatch == []
    end = report.end_to_end
    assert end.samples - end.same_argmax <= end.samples_with_ties


# --- a network trained by others ------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_adabin() -> Any:
    """AdaBin ResNet-20 as its authors trained it for CIFAR-10."""
    if not CHECKPOINT.is_file():
        pytest.skip(f"{CHECKPOINT.name} is absent: it lies in the project's shared folder")
    module = adabin.resnet20().eval()
    state = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict({key.removeprefix("module."): value for key, value in state.items()})
    return module


@pytest.fixture(scope="module")
def cifar_images() -> tuple[Any, list[int]]:
    """The first 20 test images of CIFAR-10 (N, C, H, W), normalised, and their classes.

    The package foolbox carries them, with the class at the end of each file's name; it is not
    imported.
    """
    from PIL import Image

    found = importlib.util.find_spec("foolbox")
    if found is None or found.origin is None:
        pytest.skip("no CIFAR-10 images: pip install --no-deps foolbox")
    files = sorted((Path(found.origin).parent / "data").glob("cifar10_*.png"))
    pixels = np.stack([np.asarray(Image.open(file).convert("RGB"), np.float32) for file in files])
    normal = (pixels / 255 - np.array(CIFAR_MEAN)) / np.array(CIFAR_STD)
    batch = torch.from_numpy(np.ascontiguousarray(normal.transpose(0, 3, 1, 2), np.float32))
    return batch, [int(file.stem.rsplit("_", 1)[1]) for file in files]


def test_the_authors_checkpoint_classifies_real_images_as_in_pytorch(
    trained_adabin: Any, cifar_images: tuple[Any, list[int]], tmp_path: Path
) -> None:
    file = tmp_path / "adabin.pbit"
    report = phonebit.convert(
        CHECKPOINT,
        file,
        model="support.torch_networks.adabin:resnet20",
        input_shape=(1, 3, 32, 32),
        strict=True,
    )
    assert report.binary_mac_share >= NETWORKS["adabin_resnet20"].binary_share
    assert report.size_after_bytes * 7 < report.size_before_bytes
    images, classes = cifar_images
    network = Network.load(file, "cpu")
    logits = network.forward(nhwc(images))
    assert isinstance(logits, np.ndarray)
    with torch.no_grad():
        expected = trained_adabin(images).numpy()
    assert np.array_equal(logits.argmax(1), expected.argmax(1))
    assert logits.argmax(1).tolist() == classes, "88 % of the test set are right, of these all"
    assert_passed(verify(trained_adabin, network, nhwc(images), layout="nhwc"))
