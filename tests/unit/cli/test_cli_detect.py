"""``phonebit run`` with a detector: boxes on the terminal, as JSON and drawn; what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phonebit.converter.writer import to_bytes
from phonebit.detection.drawing import class_color, text_color
from phonebit.images.preprocessing import Resize
from support.cli_process import Cli
from support.detector_graph import CELL, SIDE, cell_detector

RED, BLUE = (255, 0, 0), (0, 0, 255)
DIM = 20
"""Scale of the image below and the network's input: 1280 x 640 is letterboxed to 64 x 32."""


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("detector") / "cells.pbit"
    path.write_bytes(to_bytes(cell_detector()))
    return path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """1280x640, in the middle half of the input: a red and a blue cell."""
    levels = np.zeros((SIDE // 2 * DIM, SIDE * DIM, 3), np.uint8)
    cell = CELL * DIM
    levels[:cell, cell : 2 * cell] = RED
    levels[cell:, 3 * cell :] = BLUE
    path = tmp_path / "scene.png"
    Image.fromarray(levels).save(path)
    return path


def test_boxes_are_those_of_the_image_as_it_was_given(
    cli: Cli, detector: Path, image: Path
) -> None:
    done = cli("run", detector, image, "--device", "cpu", "--json")
    assert (done.code, done.document["task"]) == (0, "detect")
    (result,) = done.document["results"]
    found = {item["label"]: item for item in result["detections"]}
    cell = CELL * DIM
    assert found.keys() == {"red thing", "blue thing"}
    assert found["red thing"]["box"] == [cell, 0, 2 * cell, cell]
    assert found["blue thing"]["box"] == [3 * cell, cell, 4 * cell, 2 * cell]
    assert found["blue thing"]["index"] == 1
    assert found["red thing"]["score"] > 0.99
    assert result["drawn"] is None and result["latency_ms"] > 0


def test_the_drawing_shows_boxes_and_labels(
    cli: Cli, detector: Path, image: Path, tmp_path: Path
) -> None:
    target = tmp_path / "boxes.png"
    target.write_bytes(image.read_bytes())
    done = cli("run", detector, image, "-o", target, "--device", "cpu")
    assert done.code == 0
    assert "red thing" in done.out and "100.0 %" in done.out and "drawn into" in done.out
    before, after = (np.asarray(Image.open(path).convert("RGB")) for path in (image, target))
    assert after.shape == before.shape
    cell = CELL * DIM
    for index, (left, top) in enumerate([(cell, 0), (3 * cell, cell)]):
        color = class_color(index)
        edge = after[top + cell // 2, left : left + 4]
        assert (edge == color).all(), "the left edge has the class's colour"
        assert (
            after[top + cell // 2, left + cell // 2] == before[top + cell // 2, left + cell // 2]
        ).all()
        label = after[max(0, top - 40) : top + 40, left : left + cell]
        assert (label == color).all(axis=-1).sum() > 1000, "the label's background"
        assert (label == text_color(color)).all(axis=-1).sum() > 100, "letters on it"
    untouched = (slice(cell + 60, None), slice(0, cell))
    assert (after[untouched] == before[untouched]).all()


def test_several_images_go_into_a_folder(
    cli: Cli, detector: Path, image: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jpg"
    Image.new("RGB", (50, 40)).save(other)
    folder = tmp_path / "drawings"
    folder.mkdir()
    done = cli("run", detector, image, other, "-o", folder, "--device", "cpu")
    assert (done.code, "nothing found" in done.out) == (0, True)
    assert sorted(path.name for path in folder.iterdir()) == ["other.png", "scene.png"]


def test_limits_decide_what_is_found(cli: Cli, detector: Path, tmp_path: Path) -> None:
    half_red = tmp_path / "half.png"
    levels = np.zeros((SIDE, SIDE, 3), np.uint8)
    levels[:CELL, :CELL] = (150, 0, 0)  # objectness 0: a score of one half
    Image.fromarray(levels).save(half_red)

    def count(*flags: object) -> int:
        done = cli("run", detector, half_red, "--device", "cpu", "--json", *flags)
        return len(done.document["results"][0]["detections"])

    assert (count(), count("--score", 0.51), count("--score", 0.49)) == (1, 0, 1)


def test_other_ways_to_resize_are_undone_too(cli: Cli, tmp_path: Path, image: Path) -> None:
    path = tmp_path / "stretched.pbit"
    path.write_bytes(to_bytes(cell_detector(Resize.STRETCH)))
    done = cli("run", path, image, "--device", "cpu", "--json")
    boxes = {item["label"]: item["box"] for item in done.document["results"][0]["detections"]}
    width = SIDE * DIM
    assert boxes["red thing"][0] == width / 4 and boxes["red thing"][2] == width / 2


def test_what_is_no_detector_is_refused(cli: Cli, tiny_file: Path, image: Path) -> None:
    text = cli.refused("run", tiny_file, image, "--task", "detect")
    assert "does not say what boxes" in text and "--detection" in text


def test_a_detector_is_no_classifier(cli: Cli, detector: Path, image: Path) -> None:
    assert "no image classifier" in cli.refused("run", detector, image, "--task", "classify")


def test_flags_of_the_other_task_are_refused(
    cli: Cli, detector: Path, tiny_file: Path, image: Path
) -> None:
    assert "--top is for classifiers" in cli.refused("run", detector, image, "--top", 3)
    text = cli.refused("run", tiny_file, image, "--score", 0.5, "-o", "x.png")
    assert "-o, --score is for detectors" in text


def test_places_that_cannot_be_drawn_into_are_refused(
    cli: Cli, detector: Path, image: Path, tmp_path: Path
) -> None:
    for name in ("boxes", "boxes.txt"):
        text = cli.refused("run", detector, image, "-o", tmp_path / name)
        assert "cannot draw into a file of this kind" in text
    text = cli.refused("run", detector, image, image, "-o", tmp_path / "none.png")
    assert "several images need a folder" in text
    assert "one file" in cli.refused("run", detector, image, image, "-o", tmp_path)
    missing = tmp_path / "none" / "boxes.png"
    done = cli("run", detector, image, "-o", missing, "--json", "--device", "cpu")
    assert done.code == 2 and "cannot be written" in done.err


def test_inspect_shows_the_anchors(cli: Cli, detector: Path, u8_file: Path) -> None:
    ((output, head),) = cli("inspect", detector, "--json").document["detection"].items()
    assert output and head["kind"] == "yolov2"
    (width, height), *_ = head["anchors"]
    assert f"{width:.4g}x{height:.4g}" in cli("inspect", detector).out
    assert cli("inspect", u8_file, "--json").document["detection"] == {}
