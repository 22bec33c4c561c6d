"""Pictures on disk to network inputs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Range:
    """What the levels 0 and 255 mean to a network with real-valued input."""

    low: float
    high: float


@dataclass(frozen=True)
class Picture:
    """A picture in the form that a network reads.

    Attributes:
        path: where it came from.
        array: (height, width, channels), uint8 or float32 as the network's input.
        changes: what was done to it, e.g. "resized from 640x480", for the user to know.
    """

    path: Path
    array: NDArray[Any]
    changes: tuple[str, ...]


def load_picture(path: Path, info: TensorInfo, value_range: Range | None) -> Picture:
    """Read a picture and fit it to a network's input.

    Colour becomes grey (or grey colour) as the input's channels ask; another size is resized as a
    whole, bilinear, without cropping.

    Args:
        path: any format that Pillow reads.
        info: the input, "u8" or "f32", with 1, 3 or 4 channels.
        value_range: needed for "f32": x = low + level * (high - low) / 255, level 0..255.

    Returns:
        The picture.

    Raises:
        InputError: if the file is no readable picture, or the input takes no pictures.
    """
    height, width, channels = info.shape
    if channels not in _MODES:
        raise InputError(
            "this input takes no pictures",
            where=f"input '{info.name}'",
            expected="1, 3 or 4 channels",
            got=channels,
            hint="use phonebit.Network.forward with an array",
        )
    image, changes = _to_mode(_open(path), _MODES[channels])
    if image.size != (width, height):
        changes.append(f"resized from {image.width}x{image.height} to {width}x{height}")
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    levels = np.asarray(image, np.uint8).reshape(height, width, channels)
    return Picture(path, to_input(levels, info, value_range), tuple(changes))


def to_input(
    levels: NDArray[np.uint8], info: TensorInfo, value_range: Range | None
) -> NDArray[Any]:
    """Levels 0..255 as the values that an input reads.

    Args:
        levels: uint8, any shape.
        info: the input; "u8" leaves the levels as they are.
        value_range: what 0 and 255 mean for "f32".

    Returns:
        uint8 or float32 of the same shape.

    Raises:
        InputError: if a real-valued input comes without a range.
    """
    if info.dtype == "u8":
        return levels
    if value_range is None:
        raise InputError(
            "the file does not say which real values the levels 0..255 of a picture stand for",
            where=f"input '{info.name}'",
            hint="say it with --input-range=LOW,HIGH, as in training, e.g. --input-range=-1,1",
        )
    low, high = np.float32(value_range.low), np.float32(value_range.high)
    return levels.astype(np.float32) * ((high - low) / np.float32(255)) + low


def picture_files(folder: Path) -> list[Path]:
    """The pictures in a folder, sorted by name.

    Raises:
        InputError: if there are none.
    """
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in PICTURE_SUFFIXES)
    if not files:
        raise InputError(
            "no pictures in this folder", where=str(folder), expected=" ".join(PICTURE_SUFFIXES)
        )
    return files


def parse_range(text: str | None) -> Range | None:
    """``"-1,1"`` as a range; None stays None.

    Raises:
        InputError: if the text is not two different finite numbers with a comma.
    """
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
        if not (np.isfinite([low, high]).all() and low != high):
            raise ValueError
    except ValueError:
        raise InputError(
            "not a range", where="--input-range", expected="LOW,HIGH, e.g. -1,1", got=repr(text)
        ) from None
    return Range(low, high)


def _open(path: Path) -> Image.Image:
    """Decode the whole picture, turned upright."""
    with path.open("rb") as stream:  # a missing file or a folder is the operating system's to say
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # odd metadata are no reason to talk
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                image = Image.open(stream)
                image.load()
                return ImageOps.exif_transpose(image)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise InputError("the picture is too large", where=str(path), got=error) from error
        except Exception as error:  # decoders of damaged files raise nearly anything
            raise InputError(
                "not a picture that can be read",
                where=str(path),
                got=_first_line(error),
                hint="give a PNG, JPEG, BMP, GIF, WebP or TIFF file",
            ) from error


def _first_line(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "unknown format"
    lines: Sequence[str] = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _to_mode(image: Image.Image, mode: str) -> tuple[Image.Image, list[str]]:
    """The picture in another colour mode, and what that took."""
    changes = []
    if image.mode == "I" or image.mode.startswith("I;16"):
        changes.append("16-bit levels shortened to 8")
        levels = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))
    if image.mode == mode:
        return image, changes
    if image.mode not in {"1", "P", "PA", "LA", "La", "RGBa"}:  # storage forms, not worth a word
        changes.append(f"converted from {image.mode} to {mode}")
    return image.convert(mode), changes
