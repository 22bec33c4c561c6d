"""Where an image lies in a network's input, as the C++ library has placed it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Size = tuple[int, int]
"""(width, height), as Pillow has it."""


@dataclass(frozen=True)
class Placement:
    """An image resized as a whole, then laid on the input, which cuts or surrounds it.

    Attributes:
        image: its size.
        scaled: the size that it is resized to.
        corner: where its upper left corner lies in the input; negative where it is cut.
        input: the input's size.
    """

    image: Size
    scaled: Size
    corner: Size
    input: Size

    def to_image(self, box: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same place in the image.

        Args:
            box: (..., 4): left, top, right, bottom in parts of the input's width and height.

        Returns:
            Pixels of the image, cut at its border.
        """
        points = box.reshape(*box.shape[:-1], 2, 2) * self.input - self.corner
        pixels = points * (np.array(self.image) / self.scaled)
        return np.asarray(np.clip(pixels, 0, self.image).reshape(box.shape), np.float64)
