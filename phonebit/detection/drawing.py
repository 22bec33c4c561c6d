"""Boxes and labels drawn into an image."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from phonebit.detection.detect import Detection

if TYPE_CHECKING:
    from PIL import Image

Color = tuple[int, int, int]

GOLDEN_ANGLE: Final = 0.381966
"""Part of the colour circle between neighbouring classes: no two of the first dozens look alike."""
LINE_PART: Final = 1 / 200
TEXT_PART: Final = 1 / 26
"""Thickness of lines and size of letters, as parts of the image's longer side."""
MIN_TEXT_PIXELS: Final = 9


def class_color(index: int) -> Color:
    """A bright colour of its own for each class."""
    red, green, blue = colorsys.hsv_to_rgb((0.02 + index * GOLDEN_ANGLE) % 1, 0.85, 1.0)
    return round(255 * red), round(255 * green), round(255 * blue)


def text_color(background: Color) -> Color:
    """Black or white, whichever can be read better on it (by its luma, ITU-R 601)."""
    luma = 0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2]
    return (0, 0, 0) if luma > 127 else (255, 255, 255)


def draw_detections(image: Image.Image, detections: Sequence[Detection]) -> Image.Image:
    """A copy of an image with boxes, labels and scores; the best are drawn last, above the others.

    Args:
        image: RGB, of any size.
        detections: boxes in its pixels, best first.
    """
    from PIL import ImageDraw, ImageFont

    drawing = image.copy()
    longer = max(drawing.size)
    line = max(1, round(longer * LINE_PART))
    font = ImageFont.load_default(max(MIN_TEXT_PIXELS, round(longer * TEXT_PART)))
    canvas = ImageDraw.Draw(drawing)
    for found in reversed(detections):
        color = class_color(found.index)
        left, top, right, bottom = (round(side) for side in found.box)
        canvas.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), None, color, line)
        text = f"{found.label} {100 * found.score:.0f} %"
        x0, y0, x1, y1 = canvas.textbbox((0, 0), text, font)
        width, height = round(x1 - x0) + 2 * line, round(y1 - y0) + 2 * line
        # Above the box; inside it where there is no room.
        x = max(0, min(left, drawing.width - width))
        y = top - height if top >= height else top
        canvas.rectangle((x, y, x + width, y + height), color)
        canvas.text((x + line - x0, y + line - y0), text, text_color(color), font)
    return drawing
