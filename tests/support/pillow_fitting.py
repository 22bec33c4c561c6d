"""Images as inputs of networks, with Pillow's own resampling: the reference of runtime/images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phonebit import Preprocessing
from phonebit.images.fitting import MODES
from phonebit.images.placement import Placement, Size
from phonebit.images.preprocessing import ColorOrder, Interpolation, Resize
from phonebit.layer_info import TensorInfo


def apply_with_pillow(image: Image.Image, info: TensorInfo, rule: Preprocessing) -> NDArray[Any]:
    """What ``Preprocessing.apply`` makes of a grey, RGB or RGBA image."""
    height, width, channels = info.shape
    rule = rule.for_input(info)
    assert rule.color is not None
    where = placed(image.size, (width, height), rule)
    image = _lay(image.convert(MODES[rule.color]), where, rule)
    levels = np.asarray(image, np.uint8).reshape(height, width, channels)
    levels = levels[..., ::-1] if rule.color is ColorOrder.BGR else levels
    return levels if info.dtype == "u8" else rule.values(levels)


def placed(size: Size, into: Size, rule: Preprocessing) -> Placement:
    """Where an image comes to lie.

    - ``STRETCH``: to the input's size as a whole.
    - ``SHORTER_SIDE``: the shorter side to ``resize_to``, then the middle, as torchvision's Resize
      and CenterCrop: the longer side is rounded down, and halves of the corner to the even pixel.
    - ``LETTERBOX``: as large as fits with its proportions, in the middle.
    """
    if rule.resize is Resize.STRETCH:
        return Placement(size, into, (0, 0), into)
    if rule.resize is Resize.SHORTER_SIDE:
        scaled = (size[0] * rule.resize_to // min(size), size[1] * rule.resize_to // min(size))
        left, top = (round((have - want) / 2) for have, want in zip(scaled, into, strict=True))
        return Placement(size, scaled, (-left, -top), into)
    ratio = min(into[0] / size[0], into[1] / size[1])
    scaled = (
        min(into[0], max(1, round(size[0] * ratio))),
        min(into[1], max(1, round(size[1] * ratio))),
    )
    return Placement(size, scaled, ((into[0] - scaled[0]) // 2, (into[1] - scaled[1]) // 2), into)


def _lay(image: Image.Image, where: Placement, rule: Preprocessing) -> Image.Image:
    """Resize an image as a whole and lay it on the input, which cuts or surrounds it."""
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
    mode, resampling = image.mode, Image.Resampling[interpolation.name]
    if mode == "RGBA" and interpolation is not Interpolation.NEAREST:
        image = image.convert("RGBa")  # as Pillow does, once for both passes
    image = image.resize((size[0], image.height), resampling).resize(size, resampling)
    return image.convert(mode)
