"""A picture of any size and colour made to fit an input: everything but its values' scale.

The C++ library has code of its own for this (runtime/images), without Pillow; the numbers are the
same. Here Pillow has decoded the picture anyway, and knows more modes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.images.placement import Placement, Size, place_picture
from phonebit.images.preprocessing import ColorOrder, Interpolation, Preprocessing, Resize
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
MAX_PIXELS: Final = 1 << 27
"""Of a resized picture; a thin strip whose shorter side grows could need any amount of memory."""


@dataclass(frozen=True)
class FittedPicture:
    """A picture that fits.

    Attributes:
        levels: uint8 of shape (height, width, channels), in the input's colour order.
        changes: what was done to it, e.g. "resized from 640x480 to 28x28", for the user to know.
        placement: where it came to lie in the input.
    """

    levels: NDArray[np.uint8]
    changes: tuple[str, ...]
    placement: Placement


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
    placement = place_picture(image.size, (width, height), rule)
    if placement.scaled[0] * placement.scaled[1] > MAX_PIXELS:
        raise InputError(
            f"the picture becomes too large with a shorter side of {rule.resize_to}",
            expected=f"at most {MAX_PIXELS} pixels",
            got=_text(placement.scaled),
        )
    changes += _described(placement, rule)
    image = _lay(image, placement, rule)
    levels = np.asarray(image, np.uint8).reshape(height, width, channels)
    if color is ColorOrder.BGR:
        levels = np.ascontiguousarray(levels[..., ::-1])
    return FittedPicture(levels, tuple(changes), placement)


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


def _lay(image: Image.Image, where: Placement, rule: Preprocessing) -> Image.Image:
    """Resize a picture as a whole and lay it on the input, which cuts or surrounds it."""
    from PIL import Image

    if image.size != where.scaled:
        image = _resized(image, where.scaled, rule.interpolation)
    if image.size == where.input:
        return image
    if rule.resize is Resize.LETTERBOX:
        canvas = Image.new(image.mode, where.input, (rule.fill_level,) * len(image.getbands()))
        canvas.paste(image, where.corner)
        return canvas
    left, top = -where.corner[0], -where.corner[1]
    return image.crop((left, top, left + where.input[0], top + where.input[1]))


def _resized(image: Image.Image, size: Size, interpolation: Interpolation) -> Image.Image:
    """Resize along the rows, then down the columns.

    Levels are rounded in between, so the order matters. Pillow 13 turns it round for some sizes,
    earlier versions never do; a network must see the same numbers with all of them.
    """
    from PIL import Image

    mode, resampling = image.mode, Image.Resampling[interpolation.name]
    if mode == "RGBA" and interpolation is not Interpolation.NEAREST:
        image = image.convert("RGBa")  # as Pillow does, once for both passes
    image = image.resize((size[0], image.height), resampling).resize(size, resampling)
    return image.convert(mode)


def _described(where: Placement, rule: Preprocessing) -> list[str]:
    """What resizing changed, for the user to know."""
    changes = []
    resized = f"resized from {_text(where.picture)} to {_text(where.scaled)}"
    if rule.resize is Resize.LETTERBOX and where.picture != where.input:
        return [f"{resized} within {_text(where.input)}"]
    if where.picture != where.scaled:
        changes.append(resized)
    if where.scaled != where.input:
        changes.append(f"cut to {_text(where.input)} in the middle")
    return changes


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
