"""Images as inputs of networks, with Pillow's own resampling: the reference of runtime/images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phonebit import Preprocessing
from phonebit.images.fitting import MODES
from phonebit.images.placement import Placement, Size, place_picture
from phonebit.images.preprocessing import ColorOrder, Interpolation, Resize
from phonebit.layer_info import TensorInfo


def apply_with_pillow(image: Image.Image, info: TensorInfo, rule: Preprocessing) -> NDArray[Any]:
    """What ``Preprocessing.apply`` makes of a grey, RGB or RGBA image."""
    height, width, channels = info.shape
    rule = rule.for_input(info)
    assert rule.color is not None
    where = place_picture(image.size, (width, height), rule_fields(rule, channels))
    image = _lay(image.convert(MODES[rule.color]), where, rule)
    levels = np.asarray(image, np.uint8).reshape(height, width, channels)
    return rule.as_input(levels[..., ::-1] if rule.color is ColorOrder.BGR else levels, info)


def rule_fields(rule: Preprocessing, channels: int) -> dict[str, Any]:
    """The fields of the file's record."""
    record = rule.to_record(0, channels)
    return {name: record[name].tolist() for name in record.dtype.names or ()}


def _lay(image: Image.Image, where: Placement, rule: Preprocessing) -> Image.Image:
    """Resize a picture as a whole and lay it on the input, which cuts or surrounds it."""
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
