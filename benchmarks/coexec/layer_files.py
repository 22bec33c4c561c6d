"""Networks of one layer, as files, and such a layer measured with any parts on both processors.

The layers are those of Fine-Grained, section 5.3, as binary ones. Its float layers have 4e6 to 1e9
operations; a binary one is an order of magnitude cheaper, so the small ones are left out. A linear
layer with L rows of input is a 1x1 convolution of a map with L rows and one column.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.coexec.experiment import Bench
from benchmarks.layer_shapes import binary_layer, write_layer
from phonebit.planner.measure.measuring import LayerTimes, measure_parts
from phonebit.planner.measure.sampled_files import layer_index
from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.layer_shape import LayerShape

MACS: Final = (2e7, 5e8)
"""Multiply-accumulates, at least and at most; an operation is half of one."""
LINEAR_SIZES: Final = tuple(sorted(i * 2**j for i in (4, 5, 6) for j in range(2, 10)))
STAGES: Final = 4
FIRST_SIDES: Final = (64, 56, 48, 40)
FIRST_CHANNELS: Final = (256, 320, 384, 448, 512)
CHANNEL_DIVISORS: Final = {1: 1, 3: 1, 5: 4, 7: 8}
"""By side of the window."""
STRIDES: Final = (1, 2)
REFERENCE: Final = binary_layer(28, 256, 256, 3)
"""In the middle of the networks: 462 M multiply-accumulates."""


def name_of(layer: LayerShape) -> str:
    """Such as "3x3s1_64x56x56_128"."""
    window = f"{layer.kernel_h}x{layer.kernel_w}s{layer.stride_h}"
    return f"{window}_{layer.in_c}x{layer.in_h}x{layer.in_w}_{layer.out_c}"


def macs_of(layer: LayerShape) -> int:
    """Multiply-accumulates of one input; windows hang over the map's edges."""
    return layer.operations(layer.whole)


def linear_cases() -> Iterator[LayerShape]:
    """All of them, in a fixed order."""
    for rows, inputs, outputs in product(LINEAR_SIZES, repeat=3):
        layer = binary_layer((rows, 1), inputs, outputs)
        if _has_its_size(layer):
            yield layer


def convolution_cases() -> Iterator[LayerShape]:
    """All of them, in a fixed order: from stage to stage half the side, twice the channels."""
    for stage, side, (kernel, divisor), stride in product(
        range(STAGES), FIRST_SIDES, CHANNEL_DIVISORS.items(), STRIDES
    ):
        channels = [count * 2**stage // divisor for count in FIRST_CHANNELS]
        for inputs, outputs in product(channels, repeat=2):
            layer = binary_layer(side // 2**stage, inputs, outputs, kernel, stride)
            if _has_its_size(layer):
                yield layer


def draw(seed: int) -> Iterator[LayerShape]:
    """A linear layer, a convolution, a linear layer, ... in random order."""
    rng = random.Random(seed)
    linear, convolutions = list(linear_cases()), list(convolution_cases())
    rng.shuffle(linear)
    rng.shuffle(convolutions)
    for pair in zip(linear, convolutions, strict=False):
        yield from pair


def _has_its_size(layer: LayerShape) -> bool:
    return MACS[0] <= macs_of(layer) <= MACS[1]


def stored_layer(layer: LayerShape, folder: Path) -> tuple[Path, int]:
    """A file of the layer, which is written unless it is there, and the layer's place in it."""
    path = folder / f"{layer.op}_{name_of(layer)}.pbit"
    if not path.is_file():
        write_layer(layer, path)
    return path, layer_index(layer)


class MeasuredLayer:
    """A layer that is loaded on both processors; options are those of ``measuring_engine``."""

    def __init__(self, bench: Bench, layer: LayerShape, threads: int = 0, **options: Any) -> None:
        path, self._place = stored_layer(layer, bench.networks)
        self._engine = bench.measuring_engine(path, threads=threads, **options)
        self.height, self.channels = layer.out_h, layer.out_c

    def channels_split(self, gpu_channels: int, repeats: int) -> LayerTimes:
        """Minimum of some runs; the GPU computes the first channels; 0 or all: one side alone."""
        gpu = OutputPart(0, self.height, 0, gpu_channels) if gpu_channels else None
        rest = OutputPart(0, self.height, gpu_channels, self.channels)
        cpu = rest if gpu_channels < self.channels else None
        return measure_parts(self._engine, self._place, cpu, gpu, repeats)

    def rows_split(self, gpu_rows: int, repeats: int) -> LayerTimes:
        """The GPU computes the first rows, neither none nor all."""
        gpu = OutputPart(0, gpu_rows, 0, self.channels)
        cpu = OutputPart(gpu_rows, self.height, 0, self.channels)
        return measure_parts(self._engine, self._place, cpu, gpu, repeats)


def in_turns(
    layer: MeasuredLayer, cuts: Iterable[int], repeats: int, rounds: int
) -> dict[int, float]:
    """Microseconds by channels of the GPU: medians over rounds in which the cuts take turns."""
    times: dict[int, list[float]] = {cut: [] for cut in cuts}
    for _ in range(rounds):
        for cut, of_cut in times.items():
            of_cut.append(layer.channels_split(cut, repeats).total_us)
    return {cut: median(of_cut) for cut, of_cut in times.items()}
