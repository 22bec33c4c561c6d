"""An image of any size and colour made one image of an input.

Pillow, which has decoded the image, brings it to grey, RGB or RGBA; the C++ library does the rest
(runtime/images).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.compiled import load_runtime
from phonebit.errors import InputError
from phonebit.format.records import ColorOrder, Resize
from phonebit.images.placement import Placement, Size
from phonebit.layer_info import TensorInfo

if TYPE_CHECKING:
    from PIL import Image

MODES: Final = {
    ColorOrder.GRAY: "L",
    ColorOrder.RGB: "RGB",
    ColorOrder.BGR: "RGB",
    ColorOrder.RGBA: "RGBA",
}
STORAGE_MODES: Final = frozenset({"1", "P", "PA", "LA", "La", "RGBa"})
"""Forms of storage: leaving them changes nothing that a user would want to know."""
LEVEL_MODES: Final = STORAGE_MODES | {"L", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV"}
"""Of 8-bit levels, from which Pillow converts to each of ``MODES``."""
FORMATS: Final = {"L": 0, "RGB": 1, "RGBA": 2}
"""Numbers of the C++ library's image formats."""

_BETWEEN: Final = {"La": "LA", "RGBa": "RGBA"}
"""Pillow does not convert from each mode to each."""
_NUMBERS: Final = {"I": ", 32-bit integers", "F": ", 32-bit floats", "LAB": ", CIE L*a*b*"}


@dataclass(frozen=True)
class FittedImage:
    """An image that fits.

    Attributes:
        array: (height, width, channels) as the input reads it: uint8 levels or float32 values.
        changes: what was done to it, e.g. "resized from 640x480 to 28x28", for the user to know.
        placement: where it came to lie in the input.
    """

    array: NDArray[Any]
    changes: tuple[str, ...]
    placement: Placement


def fit_image(
    given: Image.Image | NDArray[np.uint8], info: TensorInfo, rule: Mapping[str, Any]
) -> FittedImage:
    """Make an image one of an input.

    Args:
        given: a Pillow image, or levels (height, width) or (height, width, 3 or 4).
        info: the input.
        rule: fields of the file's preprocessing record, its colour order chosen for the input.

    Returns:
        The image, and what had to be done.

    Raises:
        InputError: if the image becomes too large, or the input takes no images.
    """
    height, width, channels = info.shape
    color = ColorOrder(rule["color_order"])
    if color is ColorOrder.NONE:
        raise InputError(
            "this input takes no images",
            where=f"input '{info.name}'",
            expected="1, 3 or 4 channels, and a colour order",
            got=channels,
            hint="use phonebit.Network.forward with an array",
        )
    changes: list[str] = []
    image = _image(given) if isinstance(given, np.ndarray) else given
    image = to_mode(image, MODES[color], changes)
    pixels = {"format": FORMATS[image.mode], "width": image.width, "height": image.height}
    planes = [np.ascontiguousarray(image, np.uint8)]
    array, (scaled_width, scaled_height, left, top) = load_runtime().prepare_image(
        pixels | {"planes": planes}, rule, info.dtype, info.shape
    )
    where = Placement(image.size, (scaled_width, scaled_height), (left, top), (width, height))
    return FittedImage(array, (*changes, *_described(where, rule)), where)


def _image(levels: NDArray[np.uint8]) -> Image.Image:
    from PIL import Image

    if (
        levels.dtype != np.uint8
        or levels.ndim not in (2, 3)
        or levels.shape[2:] not in ((), (1,), (3,), (4,))
    ):
        raise InputError(
            "not an image",
            expected="uint8 of shape (height, width), or with 1, 3 or 4 channels",
            got=f"{levels.dtype} of shape {levels.shape}",
        )
    return Image.fromarray(levels[..., 0] if levels.shape[2:] == (1,) else levels)


def to_mode(image: Image.Image, mode: str, changes: list[str]) -> Image.Image:
    """An image as 8-bit levels of a mode; what that changes is appended to ``changes``.

    Raises:
        InputError: if nobody can say which of its numbers are black and white.
    """
    from PIL import Image

    if image.mode.startswith("I;16"):
        changes.append("16-bit levels shortened to 8")
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == mode:
        return image
    if image.mode not in LEVEL_MODES:
        raise InputError(
            "an image whose numbers are no levels",
            expected="8 or 16 bits per channel: grey, RGB, CMYK, YCbCr or a palette",
            got=f"Pillow's mode {image.mode}{_NUMBERS.get(image.mode, '')}",
            hint="convert it to 8-bit levels first",
        )
    if image.mode not in STORAGE_MODES:
        changes.append(f"converted from {image.mode} to {mode}")
    if image.mode in _BETWEEN:
        image = image.convert(_BETWEEN[image.mode])
    return image.convert(mode)


def _described(where: Placement, rule: Mapping[str, Any]) -> list[str]:
    """What resizing changed, for the user to know."""
    changes = []
    resized = f"resized from {_text(where.image)} to {_text(where.scaled)}"
    if rule["resize"] == Resize.LETTERBOX and where.image != where.input:
        return [f"{resized} within {_text(where.input)}"]
    if where.image != where.scaled:
        changes.append(resized)
    if where.scaled != where.input:
        changes.append(f"cut to {_text(where.input)} in the middle")
    return changes


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
