"""Repeated blocks of a network, found in the order of its layers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

LONGEST_BLOCK: Final = 100
"""Layers; keeps the time linear in the size of a network."""


@dataclass(frozen=True)
class Run:
    """Layers that are repeated.

    Attributes:
        first: index of the first layer.
        length: layers of one block.
        repeats: how often the block occurs, 1: once.
    """

    first: int
    length: int
    repeats: int

    @property
    def end(self) -> int:
        """Index after the last repetition."""
        return self.first + self.length * self.repeats


def find_runs(layers: Sequence[Hashable]) -> list[Run]:
    """Split a sequence into runs; from the left, each hides as many layers as it can.

    Args:
        layers: what is the same of layers that do the same.
    """
    runs = []
    place = 0
    while place < len(layers):
        run = Run(place, 1, 1)
        for length in range(1, min((len(layers) - place) // 2, LONGEST_BLOCK) + 1):
            found = Run(place, length, _repeats(layers, place, length))
            if found.length * (found.repeats - 1) > run.length * (run.repeats - 1):
                run = found
        runs.append(run)
        place = run.end
    return runs


def _repeats(layers: Sequence[Hashable], place: int, length: int) -> int:
    block = layers[place : place + length]
    repeats = 1
    while layers[place + repeats * length : place + (repeats + 1) * length] == block:
        repeats += 1
    return repeats
