"""``phonebit models``: the list, the file that it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from phonebit import Network
from phonebit.models.networks import NETWORKS
from support.cli_process import Cli


def test_the_list_names_every_network_with_its_size(cli: Cli) -> None:
    done = cli("models")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    for name in NETWORKS:
        assert any(line.startswith(f"{name} ") for line in lines), name
    alexnet = next(line for line in lines if line.startswith("alexnet "))
    for text in ("u8 227x227x3", "62.4 M", "90.4 %", "Krizhevsky"):
        assert text in alexnet


def test_the_list_as_json(cli: Cli) -> None:
    document = cli("models", "--json").document
    assert list(document) == list(NETWORKS)
    assert document["yolov2_tiny"]["output_shape"] == [13, 13, 125]
    assert 0.97 < document["yolov2_tiny"]["binary_mac_share"] < 0.98


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
    for name in NETWORKS:
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
