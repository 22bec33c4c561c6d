"""``phonebit demo``, as README's first command runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from phonebit.cli.demo import model_folder, true_label


def demo(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in an empty folder, in a process of its own."""
    code = "from phonebit.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, "demo", *args],
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
    for text in ("convert", "binary", "probability", "latency", "right", "cpu:", "thread"):
        assert text in done.stdout
    assert re.search(r"__(scalar|avx2|avx512|neon)|scalar", done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_the_demos_json_says_the_same(tmp_path: Path) -> None:
    document = json.loads(demo(tmp_path, "--json").stdout)
    pictures = document["pictures"]
    assert len(pictures) >= 5
    assert document["right"] == sum(p["top"][0]["label"] == p["truth"] for p in pictures)
    assert document["right"] > 0.5 * len(pictures)  # some were chosen because they are hard
    assert document["file_bytes"] < document["checkpoint_bytes"]
    assert document["binary_mac_share"] > 0.9
    assert document["kernels"]


def test_the_shipped_folder_is_complete() -> None:
    with model_folder() as folder:
        labels = (folder / "labels.txt").read_text().split()
        pictures = sorted((folder / "pictures").glob("*.png"))
        assert len(labels) == 10
        assert {true_label(path) for path in pictures} <= set(labels)
