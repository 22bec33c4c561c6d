"""Data sets on disk: images, and what is known to be in them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.detection import Truth
from phonebit.errors import InputError
from phonebit.evaluation.classes import ClassMatch, ClassNames
from phonebit.images.array_files import fits, read_arrays
from phonebit.images.image_files import images_below
from phonebit.layer_info import TensorInfo
from phonebit.text_files import MAX_RECORD_BYTES, read_text

PATH_TITLES: Final = {"path", "image", "picture", "file", "filename", "file_name", "name", "img"}
"""First cell of a CSV file's line of titles."""
Array = NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """One image.

    Attributes:
        name: for the user.
        image: a file; or uint8 levels of any size; or float32 as the network reads it.
        truth: its class, or what is in it in pixels.
    """

    name: str
    image: Path | Array
    truth: int | Truth


@dataclass(frozen=True)
class Dataset:
    """A data set for one network.

    Attributes:
        samples: its images.
        matched_by: how its class names were found among the network's.
    """

    samples: Sequence[Sample]
    matched_by: str = field(default="labels")


def read_classification(path: Path, info: TensorInfo, names: ClassNames) -> Dataset:
    """Read a data set of images with a class each.

    Args:
        path: a folder with a folder per class; a CSV file of lines "image,class", paths relative to
            its folder; or an ``.npz`` file with an array of inputs and one of classes.
        info: the network's input.
        names: its classes.

    Raises:
        InputError: if it is none of these, or its classes are not the network's.
        OSError: if it cannot be read.
    """
    if path.is_dir():
        rows = _folder_rows(path)
    elif path.suffix.lower() == ".npz":
        return _from_arrays(path, info, names)
    elif path.suffix.lower() == ".csv":
        rows = _csv_rows(path)
    else:
        path.open("rb").close()  # a missing file is the operating system's to say
        raise InputError(
            "not a data set for a classifier",
            where=str(path),
            expected="a folder with a folder per class, a .csv or an .npz file",
        )
    match = names.match({name for _, _, name in rows}, str(path))
    return Dataset([Sample(n, p, match.index[c]) for n, p, c in rows], match.by)


def _folder_rows(path: Path) -> list[tuple[str, Path, str]]:
    images = images_below(path)
    rows = [(str(f.relative_to(path)), f, f.relative_to(path).parts[0]) for f in images]
    if loose := [name for name, _, first in rows if name == first]:
        raise InputError(
            f"{len(loose)} images are in no folder of a class",
            where=str(path),
            expected="a folder per class",
            got=loose[0],
        )
    return rows


def _csv_rows(path: Path) -> list[tuple[str, Path, str]]:
    lines = read_text(path, "a CSV file", MAX_RECORD_BYTES).removeprefix("\ufeff").splitlines()
    rows = []
    for number, cells in enumerate(_parsed(lines, path), 1):
        if not any(cell.strip() for cell in cells):
            continue
        if number == 1 and cells[0].strip().casefold() in PATH_TITLES:
            continue
        if len(cells) < 2 or not cells[0].strip() or not cells[1].strip():
            raise InputError(
                "not a path and a class",
                where=f"{path}, line {number}",
                expected="cat.png,cat",
                got=",".join(cells),
            )
        name = cells[0].strip()
        rows.append((name, path.parent / name, cells[1].strip()))
    if not rows:
        raise InputError("no images in it", where=str(path), expected="lines like cat.png,cat")
    return rows


def _parsed(lines: list[str], path: Path) -> list[list[str]]:
    try:
        return list(csv.reader(lines))
    except csv.Error as error:
        raise InputError("not CSV", where=str(path), got=error) from None


def _from_arrays(path: Path, info: TensorInfo, names: ClassNames) -> Dataset:
    images_name, images, classes = _pair(read_arrays(path), info, path)
    match: Callable[[Any], int] = int
    matched_by = "numbers"
    if classes.ndim > 1:  # one-hot, or a column
        classes = classes.argmax(axis=1) if classes.shape[1] > 1 else classes[:, 0]
    if classes.dtype.kind == "U":
        found: ClassMatch = names.match(set(classes.tolist()), str(path))
        match, matched_by = found.index.__getitem__, found.by
    elif not np.all((classes >= 0) & (classes < names.count) & (classes == np.rint(classes))):
        raise InputError(
            "these are no classes of the network",
            where=str(path),
            expected=f"whole numbers from 0 to {names.count - 1}",
            got=f"{classes.min()} to {classes.max()}",
        )
    samples = [
        Sample(f"{images_name}[{i}]", image, match(classes[i].item()))
        for i, image in enumerate(images)
    ]
    return Dataset(samples, matched_by)


def _pair(arrays: dict[str, Array], info: TensorInfo, path: Path) -> tuple[str, Array, Array]:
    """The inputs and their classes; of several pairs, as of ``mnist.npz``, the one called test."""
    pairs = []
    for name, array in arrays.items():
        images = _as_inputs(array, info)
        if images is None:
            continue
        for other, classes in arrays.items():
            if other != name and len(classes) == len(images) and _are_classes(classes):
                pairs.append((name, images, classes))
    tests = [pair for pair in pairs if "test" in pair[0]]
    chosen = tests if len(pairs) > 1 else pairs
    if len(chosen) == 1:
        return chosen[0]
    raise InputError(
        "no images with their classes in it" if not pairs else "several sets of images in it",
        where=str(path),
        expected=f"an array (N, {info.text.split()[-1].replace('x', ', ')}) of uint8 or float32, "
        "and one of N classes",
        got=", ".join(f"{name} {array.dtype}{array.shape}" for name, array in arrays.items()),
    )


def _are_classes(array: Array) -> bool:
    """Numbers or names, in a row or a column, or one-hot."""
    is_row = array.ndim == 1 or (array.ndim == 2 and array.dtype.kind != "U")
    return array.dtype.kind in "iufU" and is_row and array.size > 0


def _as_inputs(array: Array, info: TensorInfo) -> Array | None:
    """Levels of images of any size, or values as the input reads them; None: neither."""
    if array.dtype == np.uint8 and array.ndim >= 3:
        if array.ndim == 4 and array.shape[3] not in (1, 3, 4) and array.shape[1] in (1, 3, 4):
            return np.moveaxis(array, 1, 3)
        return array if array.ndim <= 4 else None
    if array.dtype.kind != "f" or info.dtype != "f32" or array.ndim < 2 or not fits(array, info):
        return None
    height, width, channels = info.shape
    values = array.astype(np.float32)
    if array.ndim == 4 and array.shape[1:] == (channels, height, width) != info.shape:
        values = np.moveaxis(values, 1, 3)
    return values.reshape(-1, *info.shape)
