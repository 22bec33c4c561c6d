"""Images on disk to network inputs."""

from __future__ import annotations

import glob
import io
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from phonebit.errors import InputError
from phonebit.images.placement import Placement
from phonebit.images.preprocessing import Preprocessing
from phonebit.layer_info import TensorInfo

Item = TypeVar("Item")
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""What Pillow may decode; it knows forty others, of which one (EPS) runs another program."""
STANDARD_INPUT: Final = Path("-")
PLAIN_LEVELS = Preprocessing((0.0, 255.0))
"""How an image becomes levels where a file says nothing."""


@dataclass(frozen=True)
class ImageInput:
    """An image in the form that a network reads.

    Attributes:
        path: where it came from.
        array: (height, width, channels), uint8 or float32 as the network's input.
        changes: what was done to it, e.g. "resized from 640x480 to 28x28", for the user to know.
        placement: where it came to lie in the input.
    """

    path: Path
    array: NDArray[Any]
    changes: tuple[str, ...]
    placement: Placement


def load_image(path: Path, info: TensorInfo, rule: Preprocessing | None) -> ImageInput:
    """Read an image and make it a network's input.

    Not for several threads at once, see ``image_warnings``.

    Args:
        path: a PNG, JPEG, BMP, GIF, WebP, TIFF or PPM file, whatever its name; or "-".
        info: the input, "u8" or "f32", with 1, 3 or 4 channels.
        rule: what the image becomes; None: another size is resized as a whole, bilinear, and the
            input must be "u8".

    Returns:
        The image.

    Raises:
        InputError: if the file is no readable image, the input takes no images, or a
            real-valued input comes without a rule.
    """
    chosen, image = rule_for_levels(rule, info), open_image(path)
    try:
        fitted = chosen.fit(image, info)
    except InputError as error:
        raise InputError(
            error.what,
            where=str(path) if error.where is None else f"{path}: {error.where}",
            expected=error.expected,
            got=error.got,
            hint=error.hint,
        ) from error
    return ImageInput(path, fitted.array, fitted.changes, fitted.placement)


def rule_for_levels(rule: Preprocessing | None, info: TensorInfo) -> Preprocessing:
    """The rule, or a plain one for an input that reads levels.

    Raises:
        InputError: if there is no rule for a real-valued input.
    """
    if rule is None and info.dtype != "u8":
        raise InputError(
            "the file does not say which real values the levels 0..255 of an image stand for",
            where=f"input '{info.name}'",
            hint="say it with --input-range=LOW,HIGH, as in training, e.g. --input-range=-1,1",
        )
    return rule or PLAIN_LEVELS


def named_images(names: Iterable[Path]) -> list[Path]:
    """The images that a user named: files, "-", all images of folders, what patterns match.

    Raises:
        InputError: if a folder has no images, or a pattern matches no file.
    """
    images: list[Path] = []
    for name in names:
        if name.is_dir():
            images += image_files(name)
        elif name.exists() or not glob.has_magic(str(name)):
            images.append(name)
        else:
            matches = glob.glob(str(name), recursive=True)  # noqa: PTH207 - absolute ones, too
            files = [path for path in map(Path, sorted(matches)) if path.is_file()]
            if not files:
                raise InputError("no file matches this pattern", where=str(name))
            images += files
    return images


def image_files(folder: Path) -> list[Path]:
    """The images in a folder, sorted by name.

    Raises:
        InputError: if there are none.
    """
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        raise InputError(
            "no images in this folder", where=str(folder), expected=" ".join(IMAGE_SUFFIXES)
        )
    return files


def images_below(folder: Path) -> list[Path]:
    """The images in a folder and in the folders in it, sorted by path.

    Raises:
        InputError: if there are none.
    """
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in IMAGE_SUFFIXES)
    return files or image_files(folder)  # which says that there are none


def evenly_spread(items: Sequence[Item], count: int | None) -> list[Item]:
    """So many of a list, evenly spread over it; None: all."""
    count = min(count or len(items), len(items))
    return [items[index * len(items) // count] for index in range(count)]


@contextmanager
def image_warnings() -> Iterator[None]:
    """Image files that are too large are errors, odd metadata no reason to talk.

    Python's filters of warnings are the process's: several threads need one such block around all.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def open_image(path: Path) -> Image.Image:
    """Decode the whole image, turned upright; not for several threads, see ``image_warnings``.

    Raises:
        InputError: if the file is no readable image.
        OSError: if it cannot be read.
    """
    with image_warnings():
        return decode_image(path)


def decode_image(image: Path | bytes) -> Image.Image:
    """``open_image`` for threads, within ``image_warnings``; also of a file's bytes.

    Raises:
        InputError: if the file is no readable image.
        OSError: if it cannot be read.
    """
    where = f"{len(image)} bytes" if isinstance(image, bytes) else str(image)
    with _open(image) as stream:  # a missing file or a folder is the operating system's to say
        try:
            opened = Image.open(stream, formats=FORMATS)
            opened.load()
            upright = ImageOps.exif_transpose(opened)
            has_16_bits = opened.mode == "I" and opened.format in ("PNG", "PPM")  # at most
            return upright.convert("I;16") if has_16_bits else upright
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise InputError("the image is too large", where=where, got=error) from error
        except Exception as error:  # decoders of damaged files raise nearly anything
            raise InputError(
                "not an image that can be read",
                where=where,
                got=_first_line(error),
                hint="give a PNG, JPEG, BMP, GIF, WebP, TIFF or PPM file",
            ) from error


def _open(image: Path | bytes) -> BinaryIO:
    if isinstance(image, bytes):
        return io.BytesIO(image)
    if image == STANDARD_INPUT:
        return io.BytesIO(_standard_input())
    try:
        return image.open("rb")
    except ValueError as error:
        raise InputError("no name of a file", where=repr(str(image)), got=error) from error


@cache
def _standard_input() -> bytes:
    """Read once: an image is opened again to draw boxes into it."""
    if sys.stdin is None:
        raise InputError("standard input is closed", where="-", hint="pipe an image into it")
    return sys.stdin.buffer.read()


def _first_line(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "unknown format"
    lines: Sequence[str] = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
