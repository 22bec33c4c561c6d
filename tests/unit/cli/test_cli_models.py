"""``phonebit models``: the list, the files that it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phonebit import Network
from phonebit.cli.demo import model_folder, true_label
from phonebit.models.networks import NETWORKS
from phonebit.models.trained import TRAINED
from support.cli_process import Cli

ROOT = Path(__file__).parents[3]
LABELS = (ROOT / "models" / "fashion_mnist" / "labels.txt").read_text().split()


def test_the_list_names_every_network_with_its_size(cli: Cli) -> None:
    done = cli("models")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    for name in (*TRAINED, *NETWORKS):
        assert any(line.startswith(f"{name} ") for line in lines), name
    alexnet = next(line for line in lines if line.startswith("alexnet "))
    for text in ("u8 227x227x3", "62.4 M", "90.4 %", "Krizhevsky"):
        assert text in alexnet


def test_the_list_as_json(cli: Cli) -> None:
    document = cli("models", "--json").document
    assert list(document) == [*TRAINED, *NETWORKS]
    assert document["yolov2_tiny"]["output_shape"] == [13, 13, 125]
    assert 0.97 < document["yolov2_tiny"]["binary_mac_share"] < 0.98


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_network_is_written_with_preprocessing_and_labels(
    name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("models", name)
    assert done.code == 0, done.err
    assert TRAINED[name].result in done.out
    network = Network.load(f"{name}.pbit", device="cpu")
    (info,) = network.inputs
    height, width, _ = info.shape
    assert TRAINED[name].input.startswith(f"{height}x{width} ")
    assert info.name in network.preprocessing
    assert network.labels == LABELS
    if not network.detection:
        images = sorted((model_folder() / "images").glob("*.png"))
        document = cli("run", f"{name}.pbit", "--device", "cpu", "--json", *images).document
        best = [image["top"][0]["label"] for image in document["results"]]
        assert sum(map(str.__eq__, best, map(true_label, images))) >= 17


def trained(recipe: str) -> Any:
    return json.loads((ROOT / "training" / recipe / "training.json").read_text())


def test_the_listed_results_are_those_of_the_trainings() -> None:
    torch = trained("fashion_mnist_torch")["networks"]
    accuracies = {
        "fashion-larq": trained("fashion_mnist")["binary"]["test_accuracy"],
        "fashion-resnet18": torch["resnet18_small"]["binary"]["test_accuracy"],
    }
    expected = {name: f"{100 * accuracy:.2f} %" for name, accuracy in accuracies.items()}
    precision = trained("garment_scenes")["networks"]["yolov2_tiny_half"]["map"]
    expected["garments-yolov2-tiny"] = f"mAP {100 * precision:.1f} %"
    assert {name: network.result for name, network in TRAINED.items()} == expected


def test_a_trained_network_has_one_form(cli: Cli) -> None:
    assert "is trained" in cli.refused("models", "fashion-larq", "--form", "float")


def test_a_network_is_written(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "small.pbit"
    done = cli("models", "vgg_small", "-o", target)
    assert done.code == 0, done.err
    assert "conv1_2" in done.out
    assert "small.pbit" in done.out
    assert Network.load(target, device="cpu").inputs[0].shape == (32, 32, 3)


def test_the_file_is_named_after_the_network(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = cli("models", "vgg_small", "--json").document
    assert document["output_path"] == "vgg_small.pbit"
    assert (tmp_path / "vgg_small.pbit").stat().st_size == document["size_after_bytes"]


def test_the_float_twin_and_half_weights(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "twin.pbit"
    options = ("--form", "float", "-o", target, "--json")
    whole = cli("models", "vgg_small", *options).document
    assert whole["binary_macs"] == 0
    half = cli("models", "vgg_small", "--float-weights", "f16", *options).document
    assert half["size_after_bytes"] < 0.51 * whole["size_after_bytes"]


def test_an_unknown_network_is_refused_with_the_known_ones(cli: Cli) -> None:
    text = cli.refused("models", "resnet50")
    assert "'resnet50'" in text
    for name in (*TRAINED, *NETWORKS):
        assert name in text


def test_options_for_a_file_need_a_network(cli: Cli, tmp_path: Path) -> None:
    assert "no network" in cli.refused("models", "-o", tmp_path / "net.pbit")
    assert "no network" in cli.refused("models", "--form", "float")


def test_a_folder_that_is_not_there_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert "cannot be written" in cli.refused("models", "vgg_small", "-o", tmp_path / "no" / "x")


def test_help(cli: Cli) -> None:
    done = cli("models", "--help")
    assert done.code == 0
    assert "Usage: phonebit models" in done.out
