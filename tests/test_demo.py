"""``phonebit demo``, as README's first command runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit.cli.demo import TEST_ACCURACY, model_folder, true_label
from training.fashion_mnist import dataset


def demo(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run_command(folder, "demo", *args)


def run_command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "phonebit", *args],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_demo_converts_classifies_and_tells_what_ran_where(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in ("convert", "binary", "18 of 20 right", "ms per image", "cpu:", "thread"):
        assert text in done.stdout
    assert "92.27 % of all 10,000 test images" in done.stdout
    assert re.search(r"__(scalar|avx2|avx512|neon)|scalar", done.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return json.loads(demo(tmp_path_factory.mktemp("demo"), "--json").stdout)


def test_the_demos_json_says_the_same(document: Any) -> None:
    images = document["pictures"]
    assert document["right"] == sum(p["top"][0]["label"] == p["truth"] for p in images) == 18
    assert document["file_bytes"] < document["checkpoint_bytes"]
    assert document["binary_mac_share"] > 0.9
    assert document["kernels"]


def test_the_commands_to_try_next_run(document: Any, tmp_path: Path) -> None:
    assert len(document["next"]) == 3
    for command in document["next"]:
        program, *arguments = shlex.split(command)
        assert program == "phonebit"
        done = run_command(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo.pbit").is_file()


def test_the_images_are_the_first_two_of_each_class() -> None:
    """As the test set has them: none is chosen for what the network makes of it."""
    labels = (model_folder() / "labels.txt").read_text().split()
    images = sorted((model_folder() / "images").glob("*.png"))
    assert Counter(map(true_label, images)) == dict.fromkeys(labels, 2)
    if not dataset.DEFAULT_DIR.is_dir():
        pytest.skip(f"{dataset.DEFAULT_DIR} is absent: apt-get install dataset-fashion-mnist")
    test_set = dataset.load_split(dataset.DEFAULT_DIR, "t10k")
    first = sorted(i for c in range(10) for i in np.flatnonzero(test_set.labels == c)[:2])
    assert [f"{i:04d}_{labels[test_set.labels[i]]}.png" for i in first] == [
        path.name for path in images
    ]


def test_the_accuracy_is_the_one_of_the_training() -> None:
    log = Path(__file__).parents[1] / "training" / "fashion_mnist" / "training.json"
    assert json.loads(log.read_text())["test_accuracy"]["binary"] == TEST_ACCURACY
