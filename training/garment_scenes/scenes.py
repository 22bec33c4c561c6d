"""Synthetic scenes for object detection: garments of Fashion-MNIST on clutter, with exact boxes.

A scene is an image of 416 x 416 pixels with one to six garments, each of them 40 to 200 pixels
large, tinted, turned by some degrees, perhaps mirrored, pasted with its own mask over gradients,
textures, shapes and scraps of other garments. Scene number i of a split depends on (seed, split, i)
alone, on every machine: NumPy's PCG64 and float32 arithmetic are all that is used. Training scenes
hold garments of the training split only, test scenes of the test split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from training.fashion_mnist.dataset import Split
from training.garment_scenes.clutter import background, scrap
from training.garment_scenes.resampling import sample_bilinear, turned_grid

SIDE: Final = 416
MAX_GARMENTS: Final = 6
SIZES: Final = (40.0, 200.0)
"""Side of a pasted garment image in pixels; drawn uniformly on a logarithmic scale."""
MAX_TURN: Final = np.deg2rad(15.0)
MAX_COVER: Final = 0.3
"""Share of a garment's box, old or new, that another box may cover."""
ATTEMPTS: Final = 12
"""Places tried for a garment before it is left out."""
SOLID_LEVEL: Final = 48.0
"""Gray level from which on a garment is opaque; below it is transparent in proportion."""

Splits = Literal["train", "t10k"]
_SPLIT_NUMBERS: Final = {"train": 0, "t10k": 1}


@dataclass(frozen=True)
class Scene:
    """One image and what is in it.

    Attributes:
        image: u8 (416, 416, 3), RGB.
        boxes: float32 (N, 4): left, top, right, bottom in pixels, tight around the pixels that a
            garment covers by more than half.
        classes: i64 (N,), Fashion-MNIST's class numbers.
    """

    image: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    classes: NDArray[np.int64]


def make_scene(garments: Split, split: Splits, index: int, seed: int) -> Scene:
    """Scene number ``index`` of a split.

    Args:
        garments: the images of that split.
        split: which it is.
        index: number of the scene.
        seed: of all scenes.
    """
    rng = np.random.default_rng([seed, _SPLIT_NUMBERS[split], index])
    canvas = background(rng, SIDE)
    for _ in range(int(rng.integers(0, 7))):
        scrap(rng, canvas, garments.images[rng.integers(len(garments.images)), :, :, 0])
    boxes: list[NDArray[np.float32]] = []
    classes: list[int] = []
    wanted = int(rng.integers(1, MAX_GARMENTS + 1))
    for _ in range(wanted):
        number = int(rng.integers(len(garments.images)))
        box = _paste(rng, canvas, garments.images[number, :, :, 0], boxes)
        if box is not None:
            boxes.append(box)
            classes.append(int(garments.labels[number]))
    canvas += rng.uniform(-3, 3, canvas.shape[:2]).astype(np.float32)[..., None]
    image = np.clip(canvas, 0, 255).astype(np.uint8)
    return Scene(image, np.array(boxes, np.float32), np.array(classes, np.int64))


def _paste(
    rng: np.random.Generator,
    canvas: NDArray[np.float32],
    garment: NDArray[np.uint8],
    others: list[NDArray[np.float32]],
) -> NDArray[np.float32] | None:
    """Draw one garment where it covers little of others; its box, or None if there is no place.

    The first garment always finds a place, so no scene is empty.
    """
    levels, alpha = _posed(rng, garment)
    rows, columns = (np.flatnonzero((alpha > 0.5).any(axis=axis)) for axis in (1, 0))
    tight = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float32)
    height, width = alpha.shape
    for _ in range(ATTEMPTS):
        # The box lies within the image; the transparent rim around it may reach beyond.
        left = int(rng.integers(-int(tight[0]), SIDE - int(tight[2]) + 1))
        top = int(rng.integers(-int(tight[1]), SIDE - int(tight[3]) + 1))
        box = tight + np.array([left, top, left, top], np.float32)
        if all(_cover(box, other) <= MAX_COVER for other in others):
            break
    else:
        return None
    x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + width, SIDE), min(top + height, SIDE)
    inside = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
    tint = rng.uniform(40, 255, 3).astype(np.float32)
    color = tint * (0.3 + 0.7 * levels[inside][..., None])
    mask = alpha[inside][..., None]
    target = canvas[y0:y1, x0:x1]
    target += mask * (color - target)
    return box


def _posed(
    rng: np.random.Generator, garment: NDArray[np.uint8]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A garment of random size, direction and turn: its gray levels 0..1 and its mask 0..1."""
    size = float(np.exp(rng.uniform(*np.log(SIZES))))
    aspect = float(np.exp(rng.uniform(-0.15, 0.15)))
    pixels = garment[:, ::-1] if rng.random() < 0.5 else garment
    turn = float(rng.uniform(-MAX_TURN, MAX_TURN))
    grid = turned_grid(pixels.shape, (size * aspect, size / aspect), turn)
    levels = sample_bilinear(pixels.astype(np.float32), grid)
    alpha = np.minimum(levels / np.float32(SOLID_LEVEL), 1)
    if not (alpha > 0.5).any():  # a garment that is nearly black; one of Fashion-MNIST's is
        alpha = np.ones_like(alpha)
    return levels / np.float32(255), alpha


def _cover(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Share of the smaller box that the other covers."""
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return float(shared / min(np.prod(a[2:] - a[:2]), np.prod(b[2:] - b[:2])))
