"""A picture of any size and colour made to fit an input: everything but its values' scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo
from phonebit.preprocessing import ColorOrder, Preprocessing, Resize

if TYPE_CHECKING:
    from PIL import Image

Size = tuple[int, int]
"""(width, height), as Pillow has it."""

MODES: Final = {
    ColorOrder.GRAY: "L",
    ColorOrder.RGB: "RGB",
    ColorOrder.BGR: "RGB",
    ColorOrder.RGBA: "RGBA",
}
STORAGE_MODES: Final = frozenset({"1", "P", "PA", "LA", "La", "RGBa"})
"""Forms of storage: leaving them changes nothing that a user would want to know."""
MAX_PIXELS: Final = 1 << 27
"""Of a resized picture; a thin strip whose shorter side grows could need any amount of memory."""


@dataclass(frozen=True)
class FittedPicture:
    """A picture that fits.

    Attributes:
        levels: uint8 of shape (height, width, channels), in the input's colour order.
        changes: what was done to it, e.g. "resized from 640x480 to 28x28", for the user to know.
    """

    levels: NDArray[np.uint8]
    changes: tuple[str, ...]


def fit_picture(
    picture: Image.Image | NDArray[np.uint8], info: TensorInfo, rule: Preprocessing
) -> FittedPicture:
    """Give a picture the colours and the size of an input.

    Args:
        picture: a Pillow image, or levels (height, width) or (height, width, 3 or 4).
        info: the input.
        rule: how.

    Returns:
        The picture, and what had to be done.

    Raises:
        InputError: if the rule does not fit the input, or the input takes no pictures.
    """
    height, width, channels = info.shape
    color = rule.for_input(info).color
    if color is None or color is ColorOrder.NONE:
        raise InputError(
            "this input takes no pictures",
            where=f"input '{info.name}'",
            expected="1, 3 or 4 channels, and a colour order",
            got=channels,
            hint="use phonebit.Network.forward with an array",
        )
    changes: list[str] = []
    image = _image(picture) if isinstance(picture, np.ndarray) else picture
    image = _to_mode(image, MODES[color], changes)
    image = _RESIZERS[rule.resize](image, (width, height), rule, changes)
    levels = np.asarray(image, np.uint8).reshape(height, width, channels)
    if color is ColorOrder.BGR:
        levels = np.ascontiguousarray(levels[..., ::-1])
    return FittedPicture(levels, tuple(changes))


def _image(levels: NDArray[np.uint8]) -> Image.Image:
    from PIL import Image

    if (
        levels.dtype != np.uint8
        or levels.ndim not in (2, 3)
        or levels.shape[2:] not in ((), (1,), (3,), (4,))
    ):
        raise InputError(
            "not a picture",
            expected="uint8 of shape (height, width), or with 1, 3 or 4 channels",
            got=f"{levels.dtype} of shape {levels.shape}",
        )
    return Image.fromarray(levels[..., 0] if levels.shape[2:] == (1,) else levels)


def _to_mode(image: Image.Image, mode: str, changes: list[str]) -> Image.Image:
    from PIL import Image

    if image.mode == "I" or image.mode.startswith("I;16"):
        changes.append("16-bit levels shortened to 8")
        levels = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))
    if image.mode == mode:
        return image
    if image.mode not in STORAGE_MODES:
        changes.append(f"converted from {image.mode} to {mode}")
    return image.convert(mode)


def _stretch(
    image: Image.Image, size: Size, rule: Preprocessing, changes: list[str]
) -> Image.Image:
    """To the input's size as a whole."""
    if image.size == size:
        return image
    changes.append(f"resized from {_text(image.size)} to {_text(size)}")
    return _resample(image, size, rule)


def _shorter_side(
    image: Image.Image, size: Size, rule: Preprocessing, changes: list[str]
) -> Image.Image:
    """Shorter side to ``resize_to``, then the middle: torchvision's Resize and CenterCrop.

    As theirs, the longer side is rounded down, and halves of the corner to the even pixel.
    """
    shorter = min(image.size)
    scaled = (
        image.width * rule.resize_to // shorter,
        image.height * rule.resize_to // shorter,
    )
    if scaled[0] * scaled[1] > MAX_PIXELS:
        raise InputError(
            f"the picture becomes too large with a shorter side of {rule.resize_to}",
            expected=f"at most {MAX_PIXELS} pixels",
            got=_text(scaled),
        )
    if image.size != scaled:
        changes.append(f"resized from {_text(image.size)} to {_text(scaled)}")
        image = _resample(image, scaled, rule)
    if image.size == size:
        return image
    changes.append(f"cut to {_text(size)} in the middle")
    left, top = (round((have - want) / 2) for have, want in zip(image.size, size, strict=True))
    return image.crop((left, top, left + size[0], top + size[1]))


def _letterbox(
    image: Image.Image, size: Size, rule: Preprocessing, changes: list[str]
) -> Image.Image:
    """As large as fits, proportions kept, in the middle of ``fill_level``."""
    from PIL import Image

    if image.size == size:
        return image
    ratio = min(size[0] / image.width, size[1] / image.height)
    scaled = (
        min(size[0], max(1, round(image.width * ratio))),
        min(size[1], max(1, round(image.height * ratio))),
    )
    changes.append(f"resized from {_text(image.size)} to {_text(scaled)} within {_text(size)}")
    canvas = Image.new(image.mode, size, (rule.fill_level,) * len(image.getbands()))
    corner = ((size[0] - scaled[0]) // 2, (size[1] - scaled[1]) // 2)
    canvas.paste(_resample(image, scaled, rule), corner)
    return canvas


_RESIZERS: Final = {
    Resize.STRETCH: _stretch,
    Resize.SHORTER_SIDE: _shorter_side,
    Resize.LETTERBOX: _letterbox,
}


def _resample(image: Image.Image, size: Size, rule: Preprocessing) -> Image.Image:
    from PIL import Image

    return image.resize(size, Image.Resampling[rule.interpolation.name])


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
