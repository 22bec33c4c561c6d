"""The layers of Fine-Grained, section 5.3, as binary ones.

Its float layers have 4e6 to 1e9 operations; a binary one is an order of magnitude cheaper, so the
small ones are left out. A linear layer with L rows of input is a 1x1 convolution of a map with L
rows and one column.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Final

from benchmarks.coexec.layer_files import LayerCase

MACS: Final = (2e7, 5e8)
"""Multiply-accumulates, at least and at most; an operation is half of one."""
LINEAR_SIZES: Final = tuple(sorted(i * 2**j for i in (4, 5, 6) for j in range(2, 10)))
STAGES: Final = 4
FIRST_SIDES: Final = (64, 56, 48, 40)
FIRST_CHANNELS: Final = (256, 320, 384, 448, 512)
CHANNEL_DIVISORS: Final = {1: 1, 3: 1, 5: 4, 7: 8}
"""By side of the window."""
STRIDES: Final = (1, 2)


def linear_cases() -> Iterator[LayerCase]:
    """All of them, in a fixed order."""
    for rows, inputs, outputs in product(LINEAR_SIZES, repeat=3):
        case = LayerCase("linear", rows, 1, inputs, outputs)
        if _has_its_size(case):
            yield case


def convolution_cases() -> Iterator[LayerCase]:
    """All of them, in a fixed order: from stage to stage half the side, twice the channels."""
    for stage, side, (kernel, divisor), stride in product(
        range(STAGES), FIRST_SIDES, CHANNEL_DIVISORS.items(), STRIDES
    ):
        channels = [count * 2**stage // divisor for count in FIRST_CHANNELS]
        for inputs, outputs in product(channels, repeat=2):
            height = side // 2**stage
            case = LayerCase("convolution", height, height, inputs, outputs, kernel, stride)
            if _has_its_size(case):
                yield case


def draw(seed: int) -> Iterator[LayerCase]:
    """A linear layer, a convolution, a linear layer, ... in random order."""
    rng = random.Random(seed)
    linear, convolutions = list(linear_cases()), list(convolution_cases())
    rng.shuffle(linear)
    rng.shuffle(convolutions)
    for pair in zip(linear, convolutions, strict=False):
        yield from pair


def _has_its_size(case: LayerCase) -> bool:
    return MACS[0] <= case.macs <= MACS[1]
