"""Small drawings, in SVG, of where a layer's results differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BARS_WIDTH: Final = 720
BAR_HEIGHT: Final = 48
CELL: Final = 8
"""Sizes in pixels."""


def channel_bars(counts: Sequence[int]) -> str:
    """One bar a channel, as high as it has differing elements; at least one has some."""
    wide = max(1, min(12, BARS_WIDTH // len(counts)))
    maximum = max(counts)
    bars = "".join(
        f'<rect x="{i * wide}" y="{BAR_HEIGHT - height}" width="{wide}" height="{height}">'
        f"<title>channel {i}: {count:,}</title></rect>"
        for i, count in enumerate(counts)
        if (height := -(-count * BAR_HEIGHT // maximum))
    )
    return _svg(wide * len(counts), BAR_HEIGHT, bars)


def map_cells(counts: Sequence[Sequence[int]]) -> str:
    """The map, darker where more elements differ; somewhere there are some."""
    maximum = max(map(max, counts))
    cells = "".join(
        f'<rect x="{x * CELL}" y="{y * CELL}" width="{CELL}" height="{CELL}" '
        f'fill-opacity="{0.2 + 0.8 * count / maximum:.2f}"><title>{count:,}</title></rect>'
        for y, row in enumerate(counts)
        for x, count in enumerate(row)
        if count
    )
    return _svg(CELL * len(counts[0]), CELL * len(counts), cells)


def _svg(width: int, height: int, content: str) -> str:
    return (
        f'<svg role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{content}</svg>"
    )
