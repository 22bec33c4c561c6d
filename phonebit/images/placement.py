"""Where a picture comes to lie in a network's input: the geometry of every way to resize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.format.records import Resize

Size = tuple[int, int]
"""(width, height), as Pillow has it."""


@dataclass(frozen=True)
class Placement:
    """A picture resized as a whole, then laid on the input, which cuts or surrounds it.

    Attributes:
        picture: its size.
        scaled: the size that it is resized to.
        corner: where its upper left corner lies in the input; negative where it is cut.
        input: the input's size.
    """

    picture: Size
    scaled: Size
    corner: Size
    input: Size

    def to_picture(self, box: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same place in the picture.

        Args:
            box: (..., 4): left, top, right, bottom in parts of the input's width and height.

        Returns:
            Pixels of the picture, cut at its border.
        """
        points = box.reshape(*box.shape[:-1], 2, 2) * self.input - self.corner
        pixels = points * (np.array(self.picture) / self.scaled)
        return np.asarray(np.clip(pixels, 0, self.picture).reshape(box.shape), np.float64)


def place_picture(picture: Size, size: Size, rule: Mapping[str, Any]) -> Placement:
    """Where a picture comes to lie.

    Args:
        picture: its size.
        size: the input's.
        rule: fields of the file's preprocessing record: how it is resized.

    - ``STRETCH``: to the input's size as a whole.
    - ``SHORTER_SIDE``: the shorter side to ``resize_to``, then the middle, as torchvision's Resize
      and CenterCrop: the longer side is rounded down, and halves of the corner to the even pixel.
    - ``LETTERBOX``: as large as fits with its proportions, in the middle.
    """
    if rule["resize"] == Resize.STRETCH:
        return Placement(picture, size, (0, 0), size)
    if rule["resize"] == Resize.SHORTER_SIDE:
        shorter = min(picture)
        to = rule["resize_to"]
        scaled = (picture[0] * to // shorter, picture[1] * to // shorter)
        left, top = (round((have - want) / 2) for have, want in zip(scaled, size, strict=True))
        return Placement(picture, scaled, (-left, -top), size)
    ratio = min(size[0] / picture[0], size[1] / picture[1])
    scaled = (
        min(size[0], max(1, round(picture[0] * ratio))),
        min(size[1], max(1, round(picture[1] * ratio))),
    )
    corner = ((size[0] - scaled[0]) // 2, (size[1] - scaled[1]) // 2)
    return Placement(picture, scaled, corner, size)
