"""``benchmarks.paper``: parts are measured, next to the paper's numbers, or say why not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import paper
from benchmarks.records import RESULTS

STORED = {
    "table-ii": "sizes.json",
    "table-iii": "peers_cpu.json",
    "table-iii-gpu": "peers_gpu.json",
    "table-iv-gpu": "energy.json",
    "figure-5": "per_layer_cpu.json",
    "kernels-gpu": "gpu_kernels.json",
}


def page_of(folder: Path, *arguments: str) -> str:
    paper.main(["--work", str(folder), *arguments])
    return (folder / "paper.md").read_text()


def test_a_part_is_measured_by_its_own_command(tmp_path: Path) -> None:
    text = page_of(tmp_path, "--smoke", "--parts", "table-iv", "kernels-gpu")
    states = ("| table-iv | measured |", "| table-iv | nothing could be measured |")
    assert sum(state in text for state in states) == 1
    assert "| kernels-gpu | left out by --smoke |" in text
    assert "| yolov2_tiny | PhoneBit, binary | 1 |" in text
    assert "PhoneBit | 225.67 | 23.75 |" in text  # the paper's own row
    assert "yolov2_tiny, PhoneBit, binary: " in text or "counter: " in text


def test_the_page_has_the_papers_numbers_next_to_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """Results of this repository in place of new ones; parts without such fail."""
        target = Path(command[-1].removeprefix("--json="))
        if target.stem in STORED:
            document = json.loads((RESULTS / STORED[target.stem]).read_text())
            cases = [case for case in document.get("cases", []) if case["network"] == "vgg16"]
            target.write_text(json.dumps({**document, "cases": cases[:1]}))
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nValueError: reason\n")

    monkeypatch.setattr(paper.subprocess, "run", run)
    monkeypatch.setattr(paper, "gpu_devices", lambda: ["a device"])
    text = page_of(tmp_path)
    assert text.count(" | measured |") == len(STORED)
    assert "| figure-5-gpu | failed: ValueError: reason |" in text
    assert "| AlexNet, CIFAR-10 | 89.0% | 87.2% | AlexNet-small, Fashion-MNIST |" in text
    assert "| VGG16 | 553.4 | 553.4" in text  # table II
    assert "| VGG16 | - | 932 (12.6x) | 252 (3.4x) | - | 73.8 (1.0x) | " in text  # table III
    assert "45x on average, up to 62x" in text  # figure 5
    assert "## Kernels on a GPU" in text

    monkeypatch.setattr(paper, "gpu_devices", list)
    assert "| kernels-gpu | no OpenCL device: " in page_of(tmp_path, "--parts", "kernels-gpu")


def test_a_part_is_measured_only_where_something_was() -> None:
    failed, done = {"reason": "ImportError: torch"}, {"median_ms": 2.0}
    unmeasured, metered = ({"energy": {"measured": is_it}} for is_it in (False, True))
    assert paper.state_of({"cases": [{"rows": [done]}, {"rows": [done]}]}) == "measured"
    assert paper.state_of({"cases": [{"rows": [done, failed]}]}) == "measured: 1 of 2 rows"
    assert paper.state_of({"rows": [unmeasured]}) == "nothing could be measured"
    assert paper.state_of({"rows": [metered]}) == "measured"
    assert paper.state_of({"networks": []}) == "measured"
