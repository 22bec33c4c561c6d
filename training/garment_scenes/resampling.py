"""Bilinear resampling in float32, the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Grid = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Row and column, in source pixels, of every pixel of the result."""


def turned_grid(source: tuple[int, ...], size: tuple[float, float], turn: float) -> Grid:
    """Where the pixels of an enlarged and turned image come from.

    Args:
        source: (height, width) of the image.
        size: (width, height) in pixels that it gets before it is turned.
        turn: clockwise, in radians.

    Returns:
        A grid as large as the turned image's bounding box; it reaches beyond the source.
    """
    cos, sin = np.cos(turn), np.sin(turn)
    width = int(np.ceil(abs(size[0] * cos) + abs(size[1] * sin)))
    height = int(np.ceil(abs(size[0] * sin) + abs(size[1] * cos)))
    x = np.arange(width, dtype=np.float32) - np.float32((width - 1) / 2)
    y = (np.arange(height, dtype=np.float32) - np.float32((height - 1) / 2))[:, None]
    across, down = source[1] / size[0], source[0] / size[1]
    columns = x * np.float32(cos * across) + y * np.float32(sin * across)
    rows = y * np.float32(cos * down) - x * np.float32(sin * down)
    return rows + np.float32((source[0] - 1) / 2), columns + np.float32((source[1] - 1) / 2)


def sample_bilinear(image: NDArray[np.float32], grid: Grid) -> NDArray[np.float32]:
    """Values between pixels; 0 around the image.

    Args:
        image: (h, w).
        grid: rows and columns of the same shape.
    """
    padded = np.pad(image, 1)
    rows = np.clip(grid[0] + 1, 0, padded.shape[0] - 1.001)
    columns = np.clip(grid[1] + 1, 0, padded.shape[1] - 1.001)
    i, j = rows.astype(np.intp), columns.astype(np.intp)
    v, u = rows - i.astype(np.float32), columns - j.astype(np.float32)
    flat, width = padded.ravel(), padded.shape[1]
    at = i * width + j
    upper = flat[at] + u * (flat[at + 1] - flat[at])
    lower = flat[at + width] + u * (flat[at + width + 1] - flat[at + width])
    return np.asarray(upper + v * (lower - upper), np.float32)


def enlarge(grid: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """A coarse (n, n, channels) grid as a smooth (side, side, channels) image."""
    place = np.linspace(0, len(grid) - 1.001, side, dtype=np.float32)
    low = place.astype(np.intp)
    part = (place - low.astype(np.float32))[:, None, None]
    rows = grid[low] + part * (grid[low + 1] - grid[low])
    part = part.reshape(1, side, 1)
    return np.asarray(rows[:, low] + part * (rows[:, low + 1] - rows[:, low]), np.float32)
