"""The shipped Fashion-MNIST network, converted once a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Cli

import phonebit

MODEL_FOLDER = Path(__file__).parents[2] / "models" / "fashion_mnist"


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    """The Larq checkpoint of this repository."""
    return MODEL_FOLDER / "fashion_mnist_bnn.h5"


@pytest.fixture(scope="session")
def pictures() -> list[Path]:
    """The sample pictures, 28x28 grey."""
    return sorted((MODEL_FOLDER / "pictures").glob("*.png"))


@pytest.fixture(scope="session")
def u8_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading picture levels."""
    path = tmp_path_factory.mktemp("converted") / "u8.pbit"
    labels = (MODEL_FOLDER / "labels.txt").read_text().split()
    phonebit.convert(checkpoint, path, input_dtype="u8", input_range=(-1.0, 1.0), labels=labels)
    return path


@pytest.fixture(scope="session")
def f32_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading real values, as it was trained."""
    path = tmp_path_factory.mktemp("converted") / "f32.pbit"
    phonebit.convert(checkpoint, path)
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs phonebit's commands."""
    monkeypatch.setenv("COLUMNS", "100")
    return Cli(capsys)
