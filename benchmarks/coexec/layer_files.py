"""Networks of one layer, as files, and such a layer measured with any parts on both processors.

The layers are those of Fine-Grained, section 5.3, as binary ones. Its float layers have 4e6 to 1e9
operations; a binary one is an order of magnitude cheaper, so the small ones are left out. A linear
layer with L rows of input is a 1x1 convolution of a map with L rows and one column.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from benchmarks.coexec.experiment import Bench
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.keras.convolutions import same_padding
from phonebit.converter.ir import Graph
from phonebit.format.reader import read_contents
from phonebit.format.records import OpKind
from phonebit.models.networks.builder import NetworkBuilder
from phonebit.output_files import write_atomically
from phonebit.planner.measure.measuring import LayerTimes, measure_parts
from phonebit.planner.plan.execution_plan import OutputPart

RANGE: Final = (-1.0, 1.0)
CONVOLUTIONS: Final = (OpKind.BINARY_CONV2D, OpKind.CONV2D)

MACS: Final = (2e7, 5e8)
"""Multiply-accumulates, at least and at most; an operation is half of one."""
LINEAR_SIZES: Final = tuple(sorted(i * 2**j for i in (4, 5, 6) for j in range(2, 10)))
STAGES: Final = 4
FIRST_SIDES: Final = (64, 56, 48, 40)
FIRST_CHANNELS: Final = (256, 320, 384, 448, 512)
CHANNEL_DIVISORS: Final = {1: 1, 3: 1, 5: 4, 7: 8}
"""By side of the window."""
STRIDES: Final = (1, 2)


@dataclass(frozen=True)
class LayerCase:
    """A binary convolution; a linear layer is one of 1x1 on a map of one column.

    Attributes:
        kind: "linear" or "convolution".
        height: of the input map.
        width: likewise.
        in_channels: of the input.
        out_channels: of the output.
        kernel: height and width of the window; padding keeps the map's size at stride 1.
        stride: in both directions.
    """

    kind: Literal["linear", "convolution"]
    height: int
    width: int
    in_channels: int
    out_channels: int
    kernel: int = 1
    stride: int = 1

    @property
    def name(self) -> str:
        """Such as "3x3s1_64x56x56_128"."""
        window = f"{self.kernel}x{self.kernel}s{self.stride}"
        return f"{window}_{self.in_channels}x{self.height}x{self.width}_{self.out_channels}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one input; windows hang over the map's edges."""
        rows, columns = (-(-side // self.stride) for side in (self.height, self.width))
        taps = self.kernel**2 * self.in_channels
        return rows * columns * taps * self.out_channels


REFERENCE: Final = LayerCase("convolution", 28, 28, 256, 256, 3)
"""In the middle of the networks: 462 M multiply-accumulates."""


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


def write_layer(case: LayerCase, folder: Path) -> tuple[Path, int]:
    """Writes a network of a layer, unless the file is there.

    Args:
        case: the layer; it gives bits behind a batch normalization.
        folder: where to; it exists.

    Returns:
        The file and the layer's place in it; before it real values become bits.
    """
    path = folder / f"{case.name}_bits.pbit"
    if not path.is_file():
        _write(_graph(case), path)
    ops = read_contents(path).ops
    return path, next(place for place, op in enumerate(ops) if int(op["kind"]) in CONVOLUTIONS)


def write_values(height: int, channels: int, folder: Path) -> Path:
    """Writes a network of one layer that only moves float32 values: a max-pool of 1x3.

    Args:
        height: rows of a map of 16 columns.
        channels: of the map.
        folder: where to; it exists.
    """
    path = folder / f"values_{channels}x{height}x16.pbit"
    if not path.is_file():
        net = NetworkBuilder("values", "binary")
        x = net.picture(height, 16, channels)
        _write(net.done(net.max_pool("pool", x, 1, 1)), path)
    return path


class MeasuredLayer:
    """One layer of a network that is loaded on both processors.

    Args:
        bench: the testbed.
        path: a network.
        layer: the layer's place in it.
        threads: of the CPU; None: one on each of its cores.
        options: of ``Network.load``: sharing, synchronization.
    """

    def __init__(
        self, bench: Bench, path: Path, layer: int, threads: int | None = None, **options: Any
    ) -> None:
        self._engine = bench.measuring_engine(path, threads, **options)
        self._layer = layer
        output = self._engine.layers[layer].outputs[0]
        shapes = {tensor.name: tensor.shape for tensor in self._engine.outputs}
        self.height, _, self.channels = shapes[output]

    def channels_split(self, gpu_channels: int, repeats: int) -> LayerTimes:
        """The least of some runs; the GPU computes the first channels; 0 or all: one side alone."""
        gpu = OutputPart(0, self.height, 0, gpu_channels) if gpu_channels else None
        rest = OutputPart(0, self.height, gpu_channels, self.channels)
        cpu = rest if gpu_channels < self.channels else None
        return measure_parts(self._engine, self._layer, cpu, gpu, repeats)

    def rows_split(self, gpu_rows: int, repeats: int) -> LayerTimes:
        """The GPU computes the first rows, neither none nor all."""
        gpu = OutputPart(0, gpu_rows, 0, self.channels)
        cpu = OutputPart(gpu_rows, self.height, 0, self.channels)
        return measure_parts(self._engine, self._layer, cpu, gpu, repeats)


def in_turns(
    layer: MeasuredLayer, cuts: Iterable[int], repeats: int, rounds: int
) -> dict[int, float]:
    """Microseconds by channels of the GPU: medians over rounds in which the cuts take turns."""
    times: dict[int, list[float]] = {cut: [] for cut in cuts}
    for _ in range(rounds):
        for cut, of_cut in times.items():
            of_cut.append(layer.channels_split(cut, repeats).total_us)
    return {cut: median(of_cut) for cut, of_cut in times.items()}


def _write(graph: Graph, path: Path) -> None:
    content = convert_graph(graph, input_dtype="f32", input_range=RANGE, check=False).content
    write_atomically(path, content)


def _graph(case: LayerCase) -> Graph:
    net = NetworkBuilder(case.name, "binary")
    x = net.activate("bits", net.picture(case.height, case.width, case.in_channels))
    x = net.conv(
        "layer", x, case.out_channels, case.kernel, stride=case.stride, padding=_padding(case)
    )
    return net.done(net.activate("sign", net.batch_norm("norm", x)))


def _padding(case: LayerCase) -> tuple[int, int, int, int]:
    """So that the output has ceil(side / stride) rows and columns."""
    top, bottom = same_padding(case.height, case.kernel, case.stride)
    left, right = same_padding(case.width, case.kernel, case.stride)
    return top, left, bottom, right
