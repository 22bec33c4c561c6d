"""The frame of the recipes: what is trained, and the log that is there after each network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from training.training_run import TrainingRun, recipe_parser  # noqa: E402


def parsed(folder: Path, *arguments: str) -> Any:
    names = ("small", "medium", "large")
    parser = recipe_parser("Train.", names, ("small", "large"), folder, folder / "out", seed=3)
    return parser.parse_args([*arguments, "--device", "cpu"])


def test_networks_are_those_asked_for_or_the_usual_ones(tmp_path: Path) -> None:
    assert parsed(tmp_path).networks == ["small", "large"]
    assert parsed(tmp_path, "medium").networks == ["medium"]


def test_an_unknown_network_is_refused_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(tmp_path, "small", "huge")
    assert "got huge, expected some of small, medium, large" in capsys.readouterr().err


def test_the_log_is_written_after_each_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "--seed", "4 5"])
    # Other tests of this process compare results to the last bit.
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda precision: None)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    options = parsed(tmp_path)
    run = TrainingRun("training.some.train", options)
    run.log["seed"] = options.seed

    def train(name: str) -> dict[str, Any]:
        if name == "large":
            raise RuntimeError("out of memory")
        return {"loss": 1.5}

    with pytest.raises(RuntimeError, match="out of memory"):
        run.train_each(train)
    log = json.loads((tmp_path / "out" / "training.json").read_text())
    assert log["command"] == "python -m training.some.train --seed '4 5'"
    assert log["networks"] == {"small": {"loss": 1.5}}
    assert log["seed"] == 3 and log["seconds"] >= 0
    assert log["machine"]["versions"]["torch"]
