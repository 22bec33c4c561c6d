"""The shipped network on all 10,000 Fashion-MNIST test pictures: engine against Keras.

Predictions must be equal and logits within 1e-4, except where a float tie decides: a real value
that is zero up to rounding, whose sign float32 arithmetic in another order decides otherwise. Every
such tie is traced to its value before the sign, counted and printed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import phonebit
from phonebit.converter.reader import read_graph
from phonebit.verification.end_to_end import first_differences
from phonebit.verification.source import open_source, source_inputs
from training.fashion_mnist import dataset

pytestmark = pytest.mark.framework

FOLDER = Path(__file__).parents[2] / "models" / "fashion_mnist"
BATCH = 250
LOGIT_TOLERANCE = 1e-4
MIN_ACCURACY = 0.91


@pytest.fixture(scope="module")
def split() -> Any:
    """The 10,000 test pictures and their labels."""
    if not dataset.DEFAULT_DIR.is_dir():
        pytest.skip(f"{dataset.DEFAULT_DIR} is absent: apt-get install dataset-fashion-mnist")
    return dataset.load_split(dataset.DEFAULT_DIR, "t10k")


@pytest.fixture(scope="module")
def source() -> Any:
    """The checkpoint, run by Keras."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    pytest.importorskip("larq", reason="Larq is not installed")
    opened = open_source(FOLDER / "fashion_mnist_bnn.h5", framework=True)
    assert opened.framework is not None, opened.reason
    return opened


@pytest.mark.parametrize("input_dtype", ["u8", "f32"])
def test_predictions_and_logits_equal_keras_on_all_test_pictures(
    source: Any, split: Any, tmp_path: Path, input_dtype: str
) -> None:
    file = tmp_path / "network.pbit"
    options: dict[str, Any] = {"input_range": (-1.0, 1.0)} if input_dtype == "u8" else {}
    phonebit.convert(FOLDER / "fashion_mnist_bnn.h5", file, input_dtype=input_dtype, **options)
    network = phonebit.Network.load(file)
    graph = read_graph(file)

    count = len(split.pictures)
    assert count == 10_000
    unexplained: list[str] = []
    ties: list[str] = []
    right = other_predictions = 0
    worst = 0.0
    for begin in range(0, count, BATCH):
        levels = split.pictures[begin : begin + BATCH]
        batch = {"picture": levels if input_dtype == "u8" else real_values(levels)}
        trace = source.trace(source_inputs(source.graph, network, batch))
        values = network.activations(batch)
        got, expected = values["logits"].reshape(-1, 10), trace.values["logits"].reshape(-1, 10)
        classes = network(batch["picture"]).argmax(axis=1)
        same = classes == expected.argmax(axis=1)
        difference = np.abs(got - expected).max(axis=1)
        first = first_differences(network, graph, {**batch, **values}, trace, begin)
        explained = (first.ties > 0) & ~first.mismatch
        ties += first.shown
        for index in np.flatnonzero(~explained & (~same | ~(difference <= LOGIT_TOLERANCE))):
            unexplained.append(f"picture {begin + index}: logits differ by {difference[index]}")
        worst = max(worst, float(difference[~explained].max()))
        other_predictions += int(np.count_nonzero(~same))
        right += int(np.count_nonzero(classes == split.labels[begin : begin + BATCH]))

    print(f"\n{input_dtype}: accuracy {right / count:.4f}; largest logit difference {worst:.2g}")
    print(f"{other_predictions} predictions differ; {len(ties)} float ties {ties}")
    assert unexplained == []
    assert right / count >= MIN_ACCURACY


def real_values(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What the network was trained with: (2 u - 255) / 255."""
    return (2.0 * levels.astype(np.float32) - 255.0) / np.float32(255.0)
