"""Layers of given shapes that benchmarks measure, count and compile, and files that hold one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from phonebit.converter.importers.keras.convolutions import same_padding
from phonebit.format.writer import file_bytes
from phonebit.output_files import write_atomically
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.predict.layer_shape import LayerShape


def layer_shape(
    op: str,
    size: int | tuple[int, int],
    in_c: int,
    out_c: int,
    kernel: int = 1,
    stride: int = 1,
    pad: int | None = None,
    dtype: str = "bit",
    **facts: Any,
) -> LayerShape:
    """A layer with a square window; ``facts`` are other fields of ``LayerShape``.

    The size is one number where height and width are the same. Padding is on each side; None: as
    TensorFlow's "same".
    """
    height, width = (size, size) if isinstance(size, int) else size

    def axis(side: int) -> tuple[int, int]:
        """Padding before the map, and the output's side."""
        before, after = same_padding(side, kernel, stride) if pad is None else (pad, pad)
        return before, (side + before + after - kernel) // stride + 1

    (top, out_h), (left, out_w) = axis(height), axis(width)
    return LayerShape(
        op, height, width, in_c, out_h, out_w, out_c, dtype,
        tuple(facts.pop("operand_channels", (in_c,))), kernel, kernel, stride, stride,
        pad_top=top, pad_left=left, **facts,
    )  # fmt: skip


binary_layer = partial(layer_shape, "binary_conv2d", weight_bits=1, bits=True, thresholds=True)
"""A binary convolution whose thresholds make bits, if ``facts`` do not say otherwise."""


def sign_layer(height: int, width: int, channels: int) -> LayerShape:
    """What makes the bits that a layer reads, of the floats that its file takes in."""
    return layer_shape("elementwise", (height, width), channels, channels, dtype="f32", bits=True)


def write_layer(layer: LayerShape, path: Path) -> None:
    """Writes a file of one layer, after what makes its bits."""
    write_atomically(path, file_bytes(layer_file(layer)[0]))


@contextmanager
def temporary_file(layer: LayerShape) -> Iterator[Path]:
    """Such a file for a while."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.pbit"
        write_layer(layer, path)
        yield path
