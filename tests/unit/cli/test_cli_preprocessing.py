"""The command line: how images become inputs, from `convert` to `run` and `bench`."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from phonebit import Preprocessing, convert
from phonebit.converter.reader import read_graph
from phonebit.images.preprocessing import ColorOrder, Interpolation, Resize
from support.cli_process import Cli

RULE = """
range = [0, 1]
mean = 0.25
std = 0.5
resize = "letterbox:7"
labels = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
"""


def test_convert_reads_a_preprocessing_file_and_flags_override_it(
    cli: Cli, checkpoint: Path, tmp_path: Path
) -> None:
    rule, target = tmp_path / "rule.toml", tmp_path / "out.pbit"
    rule.write_text(RULE)
    flags = ("--preprocessing", rule, "--mean", "0.5", "--interpolation", "nearest", "--no-check")
    assert cli("convert", checkpoint, "-o", target, *flags).code == 0
    expected = Preprocessing(
        (0.0, 1.0), 0.5, 0.5, ColorOrder.GRAY, Resize.LETTERBOX,
        fill_level=7, interpolation=Interpolation.NEAREST,
    )  # fmt: skip
    graph = read_graph(target)
    assert graph.preprocessing == {"picture": expected}
    assert graph.labels == [str(index) for index in range(10)]
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join("abcdefghij"))
    assert cli("convert", checkpoint, "-o", target, *flags, "--labels", labels).code == 0
    assert read_graph(target).labels == list("abcdefghij")


def test_flags_alone_make_a_rule(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pbit"
    flags = (
        "--input-range=-2,3", "--mean", "1", "--std", "0.5", "--color", "gray", "--resize",
        "shorter:32", "--input", "u8",
    )  # fmt: skip
    assert cli("convert", checkpoint, "-o", target, "--no-check", *flags).code == 0
    rule = Preprocessing((-2.0, 3.0), 1.0, 0.5, ColorOrder.GRAY, Resize.SHORTER_SIDE, 32)
    assert read_graph(target).preprocessing == {"picture": rule}


def test_inspect_shows_preprocessing_and_labels(cli: Cli, u8_file: Path, f32_file: Path) -> None:
    text = cli("inspect", u8_file).out
    assert "gray, stretch, bilinear, levels 0..255 are -1..1" in text
    assert "ankle_boot" in text
    document = cli("inspect", u8_file, "--json").document
    assert document["preprocessing"]["picture"]["range"] == [-1, 1]
    assert len(document["labels"]) == 10
    assert cli("inspect", f32_file, "--json").document["preprocessing"] == {}


@pytest.fixture(scope="module")
def told_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading float values, with the rule that makes images these."""
    path = tmp_path_factory.mktemp("told") / "told.pbit"
    convert(checkpoint, path, preprocessing=Preprocessing((0.0, 1.0), 0.5, 0.5))
    return path


def test_run_makes_real_values_by_the_rule_in_the_file(
    cli: Cli, told_file: Path, u8_file: Path, images: list[Path]
) -> None:
    done = cli("run", told_file, *images, "--json")
    assert done.code == 0, done.err
    expected = cli("run", u8_file, *images, "--json").document
    for result, other in zip(done.document["results"], expected["results"], strict=True):
        assert result["top"][0]["index"] == other["top"][0]["index"]
        close = pytest.approx(other["top"][0]["probability"], abs=1e-4)
        assert result["top"][0]["probability"] == close
    assert done.document["preprocessing"] == {
        "range": [0, 1], "mean": [0.5], "std": [0.5], "color": "gray", "resize": "stretch",
        "interpolation": "bilinear",
    }  # fmt: skip


def test_flags_of_run_change_the_rule_in_the_file(
    cli: Cli, told_file: Path, u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    def top(file: Path, image: Path, *flags: object) -> tuple[object, ...]:
        guess = cli("run", file, image, "--json", *flags).document["results"][0]["top"][0]
        return guess["index"], round(guess["probability"], 3)

    same = top(told_file, images[0])
    assert top(told_file, images[0], "--input-range=-1,1", "--mean=0", "--std=1") == same
    assert top(told_file, images[0], "--input-range=0,9") != same
    with Image.open(images[0]) as image:
        wide = Image.new("L", (84, 28), 0)
        wide.paste(image, (28, 0))
    wide.save(tmp_path / "wide.png")
    done = cli("run", u8_file, tmp_path / "wide.png", "--resize", "shorter:28", "--json").document
    assert done["results"][0]["changes"] == ["cut to 28x28 in the middle"]
    assert done["preprocessing"]["resize"] == "shorter:28"
    assert (done["results"][0]["top"][0]["index"]) == same[0]


def test_values_that_the_network_computes_cannot_be_changed(
    cli: Cli, u8_file: Path, images: list[Path]
) -> None:
    text = cli.refused("run", u8_file, images[0], "--input-range=0,1", "--std", "2")
    assert "--input-range, --std cannot be changed" in text
    assert "convert the network again" in text


def test_a_file_that_tells_nothing_takes_levels_by_the_usual_rule(
    cli: Cli, tiny_file: Path, images: list[Path]
) -> None:
    done = cli("run", tiny_file, images[0], "--json")
    assert (done.code, done.document["preprocessing"]) == (0, None)
    told = cli("run", tiny_file, images[0], "--json", "--interpolation", "nearest").document
    assert told["preprocessing"]["interpolation"] == "nearest"
    assert told["results"][0]["top"] == done.document["results"][0]["top"]


@pytest.mark.parametrize("command", ["bench", "profile"])
def test_measurements_on_an_image_say_how_it_was_read(
    cli: Cli, u8_file: Path, images: list[Path], command: str
) -> None:
    measure = (command, u8_file, "--runs", 10, "--warmup", 0, "--threads", 1, "--batch", 2)
    image = (*measure, "--image", images[0], "--interpolation", "nearest")
    rule = "gray, stretch, nearest, levels 0..255 are -1..1"
    assert cli(*image, "--json").document["input"] == f"{images[0]}: {rule}"
    assert rule in cli(*image).out
    assert cli(*measure, "--json").document["input"] == "random"
    assert "--image" in cli.refused(*measure, "--resize", "stretch")
