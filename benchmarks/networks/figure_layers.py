"""The nine layers of figure 5: which ops of any engine belong to which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from benchmarks.rounds import Times

LAYERS: Final = tuple(f"conv{number}" for number in range(1, 10))
OTHER: Final = "other"
"""Ops of no layer: what an engine does to the input, or between its layouts."""
OF_LAYER: Final = re.compile(r"\b(?:conv|bn|sign|pool)(\d)(?!\d)")
UNPACKING: Final = "/float"
"""How the name of an op ends that turns bits into floats for the real layer behind it."""


def layer_of(names: list[str]) -> list[str]:
    """The layer of each op, in execution order, by the numbers in their names."""
    layers: list[str] = []
    for name in reversed(names):
        found = OF_LAYER.search(name)
        own = f"conv{found[1]}" if found and f"conv{found[1]}" in LAYERS else OTHER
        if name.endswith(UNPACKING) and layers:
            own = layers[-1]
        layers.append(own)
    return layers[::-1]


def by_layer(times: Iterable[tuple[str, float]]) -> Times:
    """Milliseconds of each layer, and of the rest if there is any, from those of ops in order."""
    ops = list(times)
    sums = dict.fromkeys(LAYERS, 0.0)
    for layer, (_, milliseconds) in zip(layer_of([name for name, _ in ops]), ops, strict=True):
        sums[layer] = sums.get(layer, 0.0) + milliseconds
    return sums
