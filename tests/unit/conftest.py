"""The shipped Fashion-MNIST network, converted once a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import phonebit
from phonebit.converter.writer import to_bytes
from support.cli_process import Cli
from support.golden import tiny_classifier
from support.opencl_device import device_name, pyopencl_device

MODEL_FOLDER = Path(__file__).parents[2] / "models" / "fashion_mnist"


def share_kernels(source: Path, target: Path) -> None:
    """Links them: the runtime replaces files, and never writes into one."""
    for file in source.glob("*.clbin"):
        with suppress(FileExistsError):
            (target / file.name).hardlink_to(file)


@pytest.fixture
def cache_folder(
    kernel_cache: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A cache folder of a test that tunes; kernels are those of all tests."""
    folder = tmp_path_factory.mktemp("cache")
    share_kernels(Path(kernel_cache), folder)
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(folder))
    yield folder
    share_kernels(folder, Path(kernel_cache))


@pytest.fixture(scope="session")
def opencl_queue() -> Any:
    """A pyopencl queue on the OpenCL device under test; skips where there is none."""
    device = pyopencl_device()
    import pyopencl as cl

    return cl.CommandQueue(cl.Context([device]))


@pytest.fixture(scope="session")
def gpu(opencl_queue: Any) -> str:
    """phonebit's name of the same device."""
    return device_name(opencl_queue.device)


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    """The Larq checkpoint of this repository."""
    return MODEL_FOLDER / "fashion_mnist_bnn.h5"


@pytest.fixture(scope="session")
def images() -> list[Path]:
    """The sample images, 28x28 grey."""
    return sorted((MODEL_FOLDER / "images").glob("*.png"))


@pytest.fixture(scope="session")
def u8_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading image levels."""
    path = tmp_path_factory.mktemp("converted") / "u8.pbit"
    labels = (MODEL_FOLDER / "labels.txt").read_text().split()
    phonebit.convert(checkpoint, path, input_dtype="u8", input_range=(-1.0, 1.0), labels=labels)
    return path


@pytest.fixture(scope="session")
def f32_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading float values, as it was trained."""
    path = tmp_path_factory.mktemp("converted") / "f32.pbit"
    phonebit.convert(checkpoint, path)
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs phonebit's commands."""
    monkeypatch.setenv("COLUMNS", "100")
    return Cli(capsys)


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little untrained classifier: u8 image, binary layers, ten logits; quick to load."""
    path = tmp_path_factory.mktemp("networks") / "tiny.pbit"
    path.write_bytes(to_bytes(tiny_classifier(), {}))
    return path
