"""Where a layer's results differ: enough to see a pattern, without keeping whole tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Kind = Literal["wrong", "float tie", "exact zero", "lower precision"]
"""wrong: none of the others. float tie: a bit whose float value is zero up to rounding. exact
zero: a bit where the source's own value is 0, which no bit can equal. lower precision: a bit whose
float value is zero up to the lower precision that was asked for."""

KEPT_PLACES = 10
"""Places of each kind that are kept, the first ones."""
MAP_CELLS = 32
"""Rows and columns in which a map is drawn; larger maps are counted in cells of several pixels."""


@dataclass(frozen=True)
class Place:
    """One element that differs.

    Attributes:
        value: name of the tensor.
        index: (sample, row, column, channel).
        expected: what the source has there.
        got: what the engine computed.
        kind: of the difference.
        margin: for a bit that comes from a float value: how far that is above its threshold.
    """

    value: str
    index: tuple[int, int, int, int]
    expected: float
    got: float
    kind: Kind
    margin: float | None = None

    def __str__(self) -> str:
        """``name[sample, row, column, channel]``."""
        return f"{self.value}[{', '.join(map(str, self.index))}]"


@dataclass
class Differences:
    """All of a layer's differing elements, counted by where they are.

    Attributes:
        places: the first of each kind.
        channels: differing elements by channel.
        cells: differing elements by row and column of the map, at most MAP_CELLS of each.
        size: (height, width) of the map.
    """

    places: list[Place] = field(default_factory=list)
    channels: list[int] = field(default_factory=list)
    cells: list[list[int]] = field(default_factory=list)
    size: tuple[int, int] = (0, 0)

    def add(
        self,
        origin: tuple[str, int],
        expected: Array,
        got: Array,
        masks: dict[Kind, Mask],
        margin: Array | None = None,
    ) -> None:
        """Count the differing elements of one tensor.

        Args:
            origin: name of the tensor and number of the batch's first sample.
            expected: (N, height, width, channels).
            got: likewise.
            masks: where they differ, by kind, likewise; no element is in two of them.
            margin: for bits that come from float values: the distances from the thresholds.
        """
        differs = np.logical_or.reduce(list(masks.values()))
        if not differs.any():
            return
        name, first_sample = origin
        for kind, mask in masks.items():
            kept = sum(place.kind == kind for place in self.places)
            for where in np.argwhere(mask)[: KEPT_PLACES - kept]:
                sample, row, column, channel = map(int, where)
                spot = (sample, row, column, channel)
                self.places.append(
                    Place(
                        name,
                        (sample + first_sample, row, column, channel),
                        float(expected[spot]),
                        float(got[spot]),
                        kind,
                        None if margin is None else float(margin[spot]),
                    )
                )
        self.channels = _total(self.channels, differs.sum(axis=(0, 1, 2)))
        self.size = (differs.shape[1], differs.shape[2])
        self.cells = _total(self.cells, _in_cells(differs.sum(axis=(0, 3))))


def _in_cells(counts: Array) -> Array:
    """(height, width) counts summed into at most MAP_CELLS rows and columns."""
    for axis in (0, 1):
        step = -(-counts.shape[axis] // MAP_CELLS)
        counts = np.add.reduceat(counts, np.arange(0, counts.shape[axis], step), axis=axis)
    return counts


def _total(before: list[Any], more: Array) -> list[Any]:
    """Counts so far and more of them; a layer's outputs all have the same shape."""
    total: list[Any] = (np.asarray(before) + more if before else more).tolist()
    return total
