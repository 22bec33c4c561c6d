"""Networks of one layer, as files: what the experiments on single layers measure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.keras.convolutions import same_padding
from phonebit.converter.ir import Graph
from phonebit.format.reader import read_contents
from phonebit.format.records import OpKind
from phonebit.models.networks.builder import NetworkBuilder
from phonebit.output_files import write_atomically

Output = Literal["bits", "values"]
RANGE: Final = (-1.0, 1.0)
CONVOLUTIONS: Final = (OpKind.BINARY_CONV2D, OpKind.CONV2D)


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


def write_layer(case: LayerCase, folder: Path, output: Output = "bits") -> tuple[Path, int]:
    """Writes a network of a layer, unless the file is there.

    Args:
        case: the layer.
        folder: where to; it exists.
        output: what the layer gives: bits behind a batch normalization, or values.

    Returns:
        The file and the layer's place in it; before it real values become bits.
    """
    path = folder / f"{case.name}_{output}.pbit"
    if not path.is_file():
        content = convert_graph(
            _graph(case, output), input_dtype="f32", input_range=RANGE, check=False
        ).content
        write_atomically(path, content)
    return path, convolution_of(path)


def convolution_of(path: Path) -> int:
    """The place of a file's first convolution."""
    ops = read_contents(path).ops
    return next(index for index, op in enumerate(ops) if int(op["kind"]) in CONVOLUTIONS)


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
        graph = net.done(net.max_pool("pool", x, 1, 1))
        content = convert_graph(graph, input_dtype="f32", input_range=RANGE, check=False).content
        write_atomically(path, content)
    return path


def _graph(case: LayerCase, output: Output) -> Graph:
    net = NetworkBuilder(case.name, "binary")
    x = net.activate("bits", net.picture(case.height, case.width, case.in_channels))
    x = net.conv(
        "layer", x, case.out_channels, case.kernel, stride=case.stride, padding=_padding(case)
    )
    x = net.batch_norm("norm", x)
    return net.done(net.activate("sign", x) if output == "bits" else x)


def _padding(case: LayerCase) -> tuple[int, int, int, int]:
    """So that the output has ceil(side / stride) rows and columns."""
    top, bottom = same_padding(case.height, case.kernel, case.stride)
    left, right = same_padding(case.width, case.kernel, case.stride)
    return top, left, bottom, right
