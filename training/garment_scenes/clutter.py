"""What is in a scene besides the garments: background, shapes, scraps of garments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.garment_scenes.resampling import enlarge, sample_bilinear, turned_grid

Canvas = NDArray[np.float32]


def background(rng: np.random.Generator, side: int) -> Canvas:
    """A gradient with textures of several scales and some shapes on it.

    Returns:
        float32 (side, side, 3), about 0..255.
    """
    canvas = enlarge(rng.uniform(20, 235, (2, 2, 3)).astype(np.float32), side)
    for cells in (5, 17, 60):
        if rng.random() < 0.6:
            strength = rng.uniform(5, 45)
            channels = 3 if rng.random() < 0.5 else 1
            noise = rng.uniform(-1, 1, (cells, cells, channels)).astype(np.float32)
            canvas = canvas + np.float32(strength) * enlarge(noise, side)
    for _ in range(int(rng.integers(0, 9))):
        _shape(rng, canvas)
    return canvas


def _shape(rng: np.random.Generator, canvas: Canvas) -> None:
    """An ellipse, a box or a field of stripes, filled or as an outline, turned at will."""
    side = len(canvas)
    reach = rng.uniform(8, 110, 2)
    x0, y0 = rng.uniform(0, side, 2)
    turn = rng.uniform(0, np.pi)
    half = int(np.hypot(*reach)) + 1
    left, right = max(0, int(x0) - half), min(side, int(x0) + half)
    top, bottom = max(0, int(y0) - half), min(side, int(y0) + half)
    x = (np.arange(left, right, dtype=np.float32) - np.float32(x0))[None]
    y = (np.arange(top, bottom, dtype=np.float32) - np.float32(y0))[:, None]
    cos, sin = np.float32(np.cos(turn)), np.float32(np.sin(turn))
    u = (x * cos + y * sin) / np.float32(reach[0])
    v = (y * cos - x * sin) / np.float32(reach[1])
    kind = rng.integers(3)
    radius = u * u + v * v if kind == 0 else np.maximum(np.abs(u), np.abs(v))
    mask = radius <= 1
    if kind == 2:
        mask &= np.floor(u * np.float32(rng.uniform(2, 6))) % 2 == 0
    elif rng.random() < 0.4:
        mask &= radius >= np.float32(rng.uniform(0.6, 0.9))
    color = rng.uniform(0, 255, 3).astype(np.float32)
    opacity = np.float32(rng.uniform(0.4, 1.0))
    target = canvas[top:bottom, left:right]
    target[mask] += opacity * (color - target[mask])


def scrap(rng: np.random.Generator, canvas: Canvas, garment: NDArray[np.uint8]) -> None:
    """A piece of a garment, which a detector must not take for one: its texture without its form.

    Args:
        rng: source of randomness.
        canvas: drawn on.
        garment: u8 (28, 28).
    """
    side = len(canvas)
    cut = int(rng.integers(6, 11))
    row, column = rng.integers(4, 24 - cut, 2)
    piece = garment[row : row + cut, column : column + cut].astype(np.float32)
    size = rng.uniform(15, 70, 2)
    grid = turned_grid(piece.shape, (size[0], size[1]), float(rng.uniform(-np.pi, np.pi)))
    levels = sample_bilinear(piece, grid)
    height, width = levels.shape
    top, left = int(rng.integers(0, side - height)), int(rng.integers(0, side - width))
    tint = rng.uniform(40, 255, 3).astype(np.float32)
    mask = np.minimum(levels / np.float32(48), 1)[..., None]
    target = canvas[top : top + height, left : left + width]
    target += mask * (tint * (0.3 + 0.7 * levels[..., None] / 255) - target)
