"""The shipped network on all 10,000 Fashion-MNIST test images: engine against Keras.

Predictions must be equal and logits within 1e-4, except where a float tie decides: a float value
that is zero up to rounding, whose sign float32 arithmetic in another order decides otherwise. Every
such tie is traced to its value before the sign, counted and printed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import phonebit
from phonebit.converter.ir import Graph
from phonebit.converter.reader import read_graph
from phonebit.verification.end_to_end import first_differences
from phonebit.verification.source import open_source, source_inputs
from training.fashion_mnist import dataset

pytestmark = pytest.mark.framework

FOLDER = Path(__file__).parents[2] / "models" / "fashion_mnist"
CHECKPOINT = FOLDER / "fashion_mnist_bnn.h5"
BATCH = 250
LOGIT_TOLERANCE = 1e-4
MIN_ACCURACY = 0.91


@pytest.fixture(scope="module")
def split() -> Any:
    """The 10,000 test images and their labels."""
    if not dataset.DEFAULT_DIR.is_dir():
        pytest.skip(f"{dataset.DEFAULT_DIR} is absent: apt-get install dataset-fashion-mnist")
    return dataset.load_split(dataset.DEFAULT_DIR, "t10k")


@pytest.fixture(scope="module")
def source() -> Any:
    """The checkpoint, run by Keras."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    pytest.importorskip("larq", reason="Larq is not installed")
    opened = open_source(CHECKPOINT, framework=True)
    assert opened.framework is not None, opened.reason
    return opened


@dataclass
class Comparison:
    """One file of the network and Keras, image by image."""

    path: Path
    network: phonebit.Network
    graph: Graph
    unexplained: list[str] = field(default_factory=list)
    ties: list[str] = field(default_factory=list)
    right: int = 0
    other_predictions: int = 0
    worst: float = 0.0

    @classmethod
    def of(cls, path: Path, input_dtype: Any) -> Comparison:
        """Converts the checkpoint into a file."""
        options: dict[str, Any] = {"input_range": (-1.0, 1.0)} if input_dtype == "u8" else {}
        phonebit.convert(CHECKPOINT, path, input_dtype=input_dtype, **options)
        return cls(path, phonebit.Network.load(path), read_graph(path))

    def add(self, batch: dict[str, NDArray[Any]], labels: Any, trace: Any, begin: int) -> None:
        values = self.network.activations(batch)
        got, expected = values["logits"].reshape(-1, 10), trace.values["logits"].reshape(-1, 10)
        classes = self.network(batch["picture"]).argmax(axis=1)
        same = classes == expected.argmax(axis=1)
        difference = np.abs(got - expected).max(axis=1)
        first = first_differences(self.network, self.graph, {**batch, **values}, trace, begin)
        explained = (first.ties > 0) & ~first.mismatch
        self.ties += first.shown
        for index in np.flatnonzero(~explained & (~same | ~(difference <= LOGIT_TOLERANCE))):
            by = difference[index]
            self.unexplained.append(f"image {begin + index}: logits differ by {by}")
        self.worst = max(self.worst, float(difference[~explained].max()))
        self.other_predictions += int(np.count_nonzero(~same))
        self.right += int(np.count_nonzero(classes == labels))


def test_predictions_and_logits_equal_keras_on_all_test_images(
    source: Any, split: Any, tmp_path: Path
) -> None:
    """Of a file that reads levels, and of one that reads the float values that they stand for."""
    files = [Comparison.of(tmp_path / f"{dtype}.pbit", dtype) for dtype in ("u8", "f32")]
    of_levels, of_values = files
    count = len(split.images)
    assert count == 10_000
    for begin in range(0, count, BATCH):
        part = slice(begin, begin + BATCH)
        levels = {"picture": split.images[part]}
        values = source_inputs(source.graph, of_levels.network, levels)
        trace = source.trace(values)
        of_levels.add(levels, split.labels[part], trace, begin)
        of_values.add(values, split.labels[part], trace, begin)
    for file in files:
        accuracy = file.right / count
        print(f"\n{file.path.stem}: {accuracy=:.4f}; largest logit difference {file.worst:.2g}")
        print(f"{file.other_predictions} predictions differ; float ties {file.ties}")
        assert file.unexplained == []
        assert accuracy >= MIN_ACCURACY
