"""Data sets of detectors: annotations in the XML of PASCAL VOC or the JSON of COCO."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np

from phonebit.detection import Truth
from phonebit.errors import InputError
from phonebit.evaluation.classes import ClassNames
from phonebit.evaluation.samples import Dataset, Sample
from phonebit.images.image_files import IMAGE_SUFFIXES
from phonebit.text_files import DAMAGED, MAX_RECORD_BYTES, parse_json, read_text

VOC_FOLDERS: Final = ("", "../JPEGImages", "../images")
"""Where an image is, seen from its annotation."""


@dataclass(frozen=True)
class _Thing:
    """One annotated object: name, left, top, right, bottom in pixels, whether it never counts."""

    name: str
    box: tuple[float, float, float, float]
    ignored: bool


Annotated = tuple[str, Path, list[_Thing]]


def read_detection(path: Path, names: ClassNames, images: Path | None = None) -> Dataset:
    """Read a data set of images with boxes.

    Args:
        path: of PASCAL VOC: a folder with XML files in it or in its ``Annotations``, or a list of
            ``ImageSets``; of COCO: a JSON file, or a folder with one.
        names: the network's classes.
        images: the folder of COCO's images; None: that of the JSON file.

    Raises:
        InputError: if it is neither, or damaged, or its classes are not the network's.
        OSError: if it cannot be read.
    """
    annotated = _read(path, images)
    match = names.match({thing.name for _, _, things in annotated for thing in things}, str(path))
    samples = []
    for name, image, things in annotated:
        boxes = np.array([thing.box for thing in things], np.float64).reshape(-1, 4)
        classes = np.array([match.index[thing.name] for thing in things], np.int64)
        ignored = np.array([thing.ignored for thing in things], np.bool_)
        samples.append(Sample(name, image, Truth(classes, boxes, ignored)))
    return Dataset(samples, match.by)


def _read(path: Path, images: Path | None) -> list[Annotated]:
    if path.is_dir():
        folder = path / "Annotations" if (path / "Annotations").is_dir() else path
        if found := sorted(folder.rglob("*.xml")):
            return [_read_voc(file) for file in found]
        if len(documents := sorted(path.glob("*.json"))) == 1:
            return _read_coco(documents[0], images)
    elif path.suffix.lower() == ".json":
        return _read_coco(path, images)
    elif path.suffix.lower() == ".txt":
        return [_read_voc(file) for file in _listed(path)]
    else:
        path.open("rb").close()  # a missing file is the operating system's to say
    raise InputError(
        "no annotations for a detector",
        where=str(path),
        expected="a folder of PASCAL VOC (XML files, or an Annotations folder with them), a list "
        "of its ImageSets (.txt), or a file of COCO (.json)",
    )


def _listed(path: Path) -> Iterable[Path]:
    """The annotations of a list of image names, in the Annotations folder next to ImageSets."""
    above = next((f for f in path.resolve().parents if (f / "Annotations").is_dir()), None)
    lines = read_text(path, "a list of image names").split("\n")
    found = [line.split()[0] for line in lines if line.strip()]
    if above is None or not found:
        raise InputError(
            "no list of annotated images",
            where=str(path),
            expected="names of images, and a folder Annotations above",
        )
    return [above / "Annotations" / f"{Path(name).name}.xml" for name in found]


def _read_voc(path: Path) -> Annotated:
    try:
        root = ElementTree.fromstring(read_text(path, "an annotation"))
        things = [
            _Thing(_text(item, "name"), _voc_box(item), item.findtext("difficult", "0") == "1")
            for item in root.iter("object")
        ]
    except (ElementTree.ParseError, *DAMAGED) as error:
        raise InputError(
            "not an annotation of PASCAL VOC", where=str(path), got=str(error)
        ) from None
    image = _voc_image(path, root.findtext("filename", ""))
    return image.name, image, things


def _voc_box(item: ElementTree.Element) -> tuple[float, float, float, float]:
    """The file counts pixels from 1, and the last ones belong to the box."""
    sides = [float(_text(item, f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax")]
    return sides[0] - 1, sides[1] - 1, sides[2], sides[3]


def _text(item: ElementTree.Element, path: str) -> str:
    text = item.findtext(path)
    if not text:
        raise ValueError(f"an object without {path}")
    return text.strip()


def _voc_image(path: Path, filename: str) -> Path:
    """The named file, or one called as the annotation is; a missing one is a row with its error."""
    folders = [path.parent / folder for folder in VOC_FOLDERS]
    names = [Path(filename).name] if filename else []
    names += [f"{path.stem}{suffix}" for suffix in sorted(IMAGE_SUFFIXES)]
    found = (folder / name for name in names for folder in folders if (folder / name).is_file())
    return next(found, path.with_suffix(".jpg"))


def _read_coco(path: Path, images: Path | None) -> list[Annotated]:
    document = parse_json(read_text(path, "a file of COCO", MAX_RECORD_BYTES), str(path))
    try:
        names = {item["id"]: str(item["name"]) for item in document["categories"]}
        things: dict[Any, list[_Thing]] = {item["id"]: [] for item in document["images"]}
        for item in document["annotations"]:
            thing = _Thing(names[item["category_id"]], _coco_box(item), bool(item.get("iscrowd")))
            things[item["image_id"]].append(thing)
        files = [(str(item["file_name"]), things[item["id"]]) for item in document["images"]]
    except DAMAGED as error:
        got = f"{type(error).__name__}: {error}"
        raise InputError("not annotations of COCO", where=str(path), got=got) from None
    if not files:
        raise InputError("no images in it", where=str(path), expected="annotations of COCO")
    folder = path.parent if images is None else images
    return [(name, folder / name, found) for name, found in files]


def _coco_box(item: Mapping[str, Any]) -> tuple[float, float, float, float]:
    left, top, width, height = (float(number) for number in item["bbox"])
    return left, top, left + width, top + height
