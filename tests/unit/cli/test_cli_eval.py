"""``phonebit eval``: data sets in every form, the source next to the file, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phonebit
from phonebit.converter.writer import to_bytes
from support.cli_process import Cli
from support.detector_graph import CELL, SIDE, cell_detector

WRONG = {"ankle_boot", "t_shirt"}
"""Classes of which the network has one of the two images wrong."""


def label_of(image: Path) -> str:
    return image.stem.partition("_")[2]


@pytest.fixture
def folder(tmp_path: Path, images: list[Path]) -> Path:
    """A folder per class, one spelt otherwise, and a broken image."""
    root = tmp_path / "data"
    for image in images:
        target = root / label_of(image).replace("t_shirt", "T-Shirt")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, target)
    (root / "coat" / "broken.png").write_text("no image")
    return root


def test_folder_with_the_source(cli: Cli, u8_file: Path, folder: Path, checkpoint: Path) -> None:
    done = cli("eval", u8_file, folder, "--source", checkpoint, "--device", "cpu", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert (found["evaluated"], found["errors"], found["matched_by"]) == (20, 1, "labels")
    assert (found["engine"]["top1"], found["engine"]["top5"]) == (0.9, 1.0)
    assert {entry["label"] for entry in found["engine"]["classes"] if entry["top1"] < 1} == WRONG
    (mistaken,) = found["engine"]["classes"][0]["mistaken_for"]
    assert (mistaken["label"], mistaken["images"]) == ("shirt", 1)
    assert found["source"]["metrics"] == found["engine"]
    assert (found["source"]["same"], len(found["images"])) == (20, 21)
    (broken,) = [row for row in found["images"] if row["error"]]
    assert (broken["image"], broken["truth"], broken["engine"]) == ("coat/broken.png", "coat", None)
    wrong = [row for row in found["images"] if row["engine"] not in (None, row["truth"])]
    assert {row["truth"] for row in wrong} == WRONG


def test_every_form_of_data_gives_the_same(
    cli: Cli, u8_file: Path, f32_file: Path, images: list[Path], tmp_path: Path
) -> None:
    labels = (images[0].parents[1] / "labels.txt").read_text().split()
    levels = np.stack([np.asarray(Image.open(image)) for image in images])
    classes = np.array([labels.index(label_of(image)) for image in images])
    lines = [f'"{image}",{label_of(image)}' for image in images]
    (tmp_path / "named.csv").write_text("\n".join(["image,class", *lines]))
    lines = [f"{image},{number}" for image, number in zip(images, classes, strict=True)]
    (tmp_path / "numbered.csv").write_text("\n".join(lines))
    np.savez(tmp_path / "levels.npz", x_train=levels[:3], y_train=classes[:3], x_test=levels,
             y_test=np.eye(10)[classes])  # fmt: skip
    values = (levels[:, None] / 127.5 - 1).astype(np.float32)
    np.savez(tmp_path / "values.npz", images=values, names=np.array(labels)[classes])
    for name in ("named.csv", "numbered.csv", "levels.npz"):
        found = phonebit.evaluate(u8_file, tmp_path / name, workers=2)
        assert (found.engine["top1"], len(found.images), found.errors) == (0.9, 20, []), name
    assert "alphabetical order" in cli("eval", f32_file, tmp_path / "values.npz").err
    few = classes > 0
    np.savez(tmp_path / "values.npz", images=values[few], names=np.array(labels)[classes[few]])
    assert "'ankle_boot'" in cli.refused("eval", f32_file, tmp_path / "values.npz")
    assert "boxes" in cli.refused("eval", f32_file, tmp_path / "values.npz", "--iou", 0.5)
    np.savez(tmp_path / "values.npz", images=values, classes=classes)
    shown = cli("eval", f32_file, tmp_path / "values.npz", "--device", "cpu", "--samples", 10)
    assert shown.code == 0 and "10 images" in shown.out and "%" in shown.out


def annotate(folder: Path, boxes: dict[str, list[tuple[str, int, int, bool]]]) -> None:
    """The same scenes in both forms: names, rows and columns of filled cells."""
    coco: dict[str, list[dict[str, Any]]] = {"images": [], "annotations": [], "categories": []}
    names = ["blue thing", "red thing"]
    coco["categories"] = [{"id": 7 + i, "name": name} for i, name in enumerate(names)]
    for number, (stem, things) in enumerate(boxes.items()):
        objects = ""
        coco["images"].append({"id": number, "file_name": f"{stem}.png"})
        for name, row, column, ignored in things:
            x, y = column * CELL, row * CELL
            objects += (
                f"<object><name>{name}</name><difficult>{int(ignored)}</difficult><bndbox>"
                f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + CELL}</xmax>"
                f"<ymax>{y + CELL}</ymax></bndbox></object>"
            )
            coco["annotations"].append(
                {"image_id": number, "category_id": 7 + names.index(name), "iscrowd": int(ignored),
                 "bbox": [x, y, CELL, CELL]}
            )  # fmt: skip
        text = f"<annotation><filename>{stem}.png</filename>{objects}</annotation>"
        (folder / f"{stem}.xml").write_text(text)
    (folder / "scenes.json").write_text(json.dumps(coco))


def test_detectors_on_both_kinds_of_annotations(cli: Cli, tmp_path: Path) -> None:
    detector = tmp_path / "cells.pbit"
    detector.write_bytes(to_bytes(cell_detector()))
    levels = np.zeros((2, SIDE, SIDE, 3), np.uint8)
    levels[0, :CELL, :CELL] = levels[1, CELL : 2 * CELL, :CELL] = (255, 0, 0)
    levels[0, CELL : 2 * CELL, :CELL] = (0, 0, 255)
    for index, name in enumerate("ab"):
        Image.fromarray(levels[index]).save(tmp_path / f"{name}.png")
    annotate(
        tmp_path,
        {  # red: both found. Blue: the one found is ignored, one of two others does not exist.
            "a": [("red thing", 0, 0, False), ("blue thing", 1, 0, True)],
            "b": [("red thing", 1, 0, False), ("blue thing", 3, 3, False)],
            "gone": [("red thing", 0, 0, False)],
        },
    )
    for data in (tmp_path, tmp_path / "scenes.json"):
        done = cli("eval", detector, data, "--device", "cpu", "--score", 0.3, "--json")
        assert done.code == 0, done.err
        found = done.document
        assert (found["task"], found["evaluated"], found["errors"]) == ("detect", 2, 1)
        assert [row["engine"] for row in found["images"]] == [2, 1, None]
        red, blue = found["engine"]["classes"]
        assert (red["objects"], red["voc_ap50"], red["coco_ap"]) == (2, 1.0, 1.0)
        assert (blue["objects"], blue["voc_ap50"], blue["coco_ap"]) == (2, 0.0, 0.0)
        assert (found["engine"]["voc_ap50"], found["engine"]["coco_ap50"]) == (0.5, 0.5)
    shown = cli("eval", detector, tmp_path, "--device", "cpu")
    assert "COCO AP75" in shown.out and "gone" in shown.out


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", "a.png", "line 1"),
        ("x.csv", "a.png,cat", "'cat'"),
        ("x.csv", "", "no images"),
        ("x.csv", f"a.png,{'9' * 5000}", "no classes of the network"),
        ("x.npz", "no archive", "not a file of arrays"),
        ("x.parquet", "", "not a data set"),
        ("gone.csv", None, "no such file"),
        ("folder", None, "no images in this folder"),
    ],
)
def test_what_is_no_data_set(
    cli: Cli, tiny_file: Path, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    (tmp_path / "folder").mkdir()
    assert sentence in cli.refused("eval", tiny_file, tmp_path / name, "--device", "cpu")


def test_a_name_that_no_file_can_have(cli: Cli, tiny_file: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\0.png,0")
    done = cli("eval", tiny_file, tmp_path / "x.csv", "--device", "cpu", "--json")
    assert (done.code, "no name of a file" in done.document["images"][0]["error"]) == (2, True)


def test_nothing_but_broken_images(cli: Cli, tiny_file: Path, tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    for name in ("a.png", "b.jpg"):
        (tmp_path / "3" / name).write_bytes(b"\x89PNG broken")
    done = cli("eval", tiny_file, tmp_path, "--device", "cpu", "--json")
    assert done.code == 2
    assert (done.document["errors"], done.document["engine"]["top1"]) == (2, None)
    assert "2 of 2 images could not be read" in cli("eval", tiny_file, tmp_path).out


@pytest.mark.torch
def test_pytorch_next_to_the_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 4, 6)).eval()
    file, rng = tmp_path / "net.pbit", np.random.default_rng(0)
    rule = phonebit.Preprocessing((0.0, 1.0))
    phonebit.convert(module, torch.zeros(1, 3, 4, 4), file, preprocessing=rule)
    levels = rng.integers(0, 256, (20, 4, 4, 3), np.uint8)
    with torch.no_grad():
        scores = module(torch.from_numpy(levels).permute(0, 3, 1, 2) / 255)
    classes = scores.argmax(1).numpy()
    classes[:5] = (classes[:5] + 1) % 6
    np.savez(tmp_path / "data.npz", images=levels, classes=classes)
    found = phonebit.evaluate(file, tmp_path / "data.npz", source=module)
    assert found.source is not None
    assert (found.source.computed_by, found.source.reason) == ("PyTorch", "")
    assert found.engine["top1"] == found.source.metrics["top1"] == 0.75
    assert found.source.same == 20 and found.source.max_abs_difference < 1e-5
