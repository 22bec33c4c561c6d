"""What a loaded network consists of: tensors, layers, and the time that each layer takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from phonebit import _runtime

OUTSIDE = "outside the layers"
"""Name of the time of an inference that is no layer's."""
Shape = tuple[int, int, int]
TensorDtype = Literal["bit", "u8", "f32"]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a network.

    Attributes:
        name: its name in the file.
        dtype: "bit" (-1 or +1), "u8" or "f32".
        shape: (height, width, channels); the batch comes in front of it.
        array_shape: what arrays have after the batch in ``Network.forward``: the same elements in
            the same order. (channels) where height and width are 1; the source's own axes where
            they are neither these nor a map's; else ``shape``.
    """

    name: str
    dtype: TensorDtype
    shape: Shape
    array_shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.array_shape:
            flat = self.shape[:2] == (1, 1)
            object.__setattr__(self, "array_shape", self.shape[2:] if flat else self.shape)

    @classmethod
    def of(cls, tensor: _runtime.TensorInfo, arrays: Mapping[str, tuple[int, ...]]) -> TensorInfo:
        """The runtime's record as ours, with the shapes that the file tells of arrays by name."""
        height, width, channels = tensor.shape
        shape = (height, width, channels)
        return cls(tensor.name, tensor.dtype, shape, array_shape_of(shape, arrays.get(tensor.name)))

    @property
    def text(self) -> str:
        """``image u8 28x28x1``."""
        return f"{self.name} {self.dtype} {shape_text(self.shape)}"

    @property
    def has_own_axes(self) -> bool:
        """Whether arrays have the source's own axes, which are neither a map's nor (channels)."""
        return self.array_shape not in {self.shape, self.shape[2:]}

    @property
    def axes_text(self) -> str:
        """``(N, 28, 28, 1): batch, rows, columns, channels``."""
        sizes = ", ".join(map(str, self.array_shape))
        names = "rows, columns, channels" if len(self.array_shape) > 1 else "features"
        return f"(N, {sizes}): {'as in the source' if self.has_own_axes else f'batch, {names}'}"


@dataclass(frozen=True)
class LayerInfo:
    """One layer of a loaded network: one op of its file.

    Attributes:
        name: the training framework's layer name.
        kind: what it computes, e.g. "binary_conv2d".
        kernel: the kernel that runs it here, on OpenCL with its parameters.
        macs: multiply-accumulates for one input.
        binary: whether those are of +1/-1 by +1/-1.
        weight_bytes: bytes of its constants in the file.
        inputs: names of the tensors that it reads.
        outputs: names of the tensors that it writes.
    """

    name: str
    kind: str
    kernel: str
    macs: int
    binary: bool
    weight_bytes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, layer: _runtime.LayerInfo) -> LayerInfo:
        """The runtime's record as ours."""
        return cls(
            layer.name,
            layer.kind,
            layer.kernel,
            layer.macs,
            layer.binary,
            layer.weight_bytes,
            tuple(layer.inputs),
            tuple(layer.outputs),
        )


@dataclass(frozen=True)
class LayerProfile:
    """Measured time of one layer.

    Attributes:
        name: the training framework's layer name.
        kind: what it computes.
        kernel: the kernel that ran.
        binary: whether its multiply-accumulates are of +1/-1 by +1/-1.
        latency_ms: milliseconds for one batch.
        macs: multiply-accumulates for one batch.
        weight_bytes: bytes of its constants in the file.
        gops: 1e9 operations per second; 1 MAC = 2 operations.
        share: its part of the summed layer times, 0..1.
    """

    name: str
    kind: str
    kernel: str
    binary: bool
    latency_ms: float
    macs: int
    weight_bytes: int
    gops: float
    share: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return asdict(self)


@dataclass(frozen=True)
class PartProfile:
    """Measured time of what one processor computes of a layer, as a plan says.

    Attributes:
        stage: of the plan.
        processor: "cpu" or "gpu".
        layer: index among the network's layers.
        part: of the layer's output: rows from, up to, channels from, up to.
        latency_ms: milliseconds for one input, waiting for the other processor not included.
    """

    stage: int
    processor: str
    layer: int
    part: tuple[int, int, int, int]
    latency_ms: float


def make_profiles(
    layers: Sequence[LayerInfo], latencies_ms: Sequence[float], batch: int
) -> list[LayerProfile]:
    """Join layers with their measured times.

    Args:
        layers: the network's layers.
        latencies_ms: milliseconds for one batch, one per layer.
        batch: inputs in that batch.

    Returns:
        One profile a layer, in execution order.
    """
    total_ms = sum(latencies_ms)
    profiles = []
    for layer, latency_ms in zip(layers, latencies_ms, strict=True):
        macs = layer.macs * batch
        gops = 2.0 * macs / (latency_ms * 1e6) if latency_ms > 0.0 else 0.0
        share = latency_ms / total_ms if total_ms > 0.0 else 0.0
        profiles.append(
            LayerProfile(
                layer.name,
                layer.kind,
                layer.kernel,
                layer.binary,
                latency_ms,
                macs,
                layer.weight_bytes,
                gops,
                share,
            )
        )
    return profiles


def binary_mac_share(layers: Sequence[LayerInfo]) -> float:
    """Part of the multiply-accumulates that is binary, 0..1 (0 if there are none)."""
    total = sum(layer.macs for layer in layers)
    return sum(layer.macs for layer in layers if layer.binary) / total if total else 0.0


def arrays_of(metadata: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of the source's inputs and outputs without their batch, by name.

    Args:
        metadata: the file's JSON metadata: {"arrays": {"x": [7, 8]}}. Entries that are no list of
            positive whole numbers count as absent.
    """
    told = metadata.get("arrays")
    return {
        str(name): tuple(sizes)
        for name, sizes in (told if isinstance(told, dict) else {}).items()
        if isinstance(sizes, list) and all(type(size) is int and size > 0 for size in sizes)
    }


def array_shape_of(shape: Shape, recorded: Sequence[int] | None) -> tuple[int, ...]:
    """The shape that a file tells of an array without its batch, if it has as many elements.

    Returns:
        () if the file tells none that fits.
    """
    sizes = tuple(recorded or ())
    fits = math.prod(sizes) == math.prod(shape) and sizes[-1:] == shape[2:]
    return sizes if fits else ()


def shape_text(shape: Shape) -> str:
    """``28x28x1``, or ``10`` for features without a map."""
    height, width, channels = shape
    return str(channels) if height == width == 1 else f"{height}x{width}x{channels}"


NUMBERS = frozenset({3, 5})
"""Columns of ``layer_cells`` that are numbers."""


def layer_cells(layers: Sequence[LayerInfo]) -> list[tuple[str, ...]]:
    """A table of layers: the titles, then a row for each."""
    return [
        ("layer", "kind", "kernel", "MACs", "binary", "weight bytes"),
        *(
            (
                layer.name,
                layer.kind,
                layer.kernel,
                f"{layer.macs:,}" if layer.macs else "",
                "yes" if layer.binary else "",
                f"{layer.weight_bytes:,}" if layer.weight_bytes else "",
            )
            for layer in layers
        ),
    ]


def layer_table(layers: Sequence[LayerInfo]) -> str:
    """Plain-text table of layers: two blanks between columns, the header underlined."""
    cells = layer_cells(layers)
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def summary_text(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    layers: Sequence[LayerInfo],
    memory: Mapping[str, int],
) -> str:
    """Plain-text description of a network: ends, layers, totals."""
    return "\n".join(
        [
            *(f"in   {info.text}" for info in inputs),
            *(f"out  {info.text}" for info in outputs),
            "",
            layer_table(layers),
            "",
            f"{sum(layer.macs for layer in layers):,} MACs, "
            f"{100 * binary_mac_share(layers):.1f} % binary; "
            f"file {memory['file_bytes']:,} bytes, arena {memory['arena_bytes']:,} bytes",
        ]
    )


def outside_layers_ms(document: Mapping[str, Any]) -> float:
    """The time of an inference that is no layer's: the call, waking threads, waiting.

    Args:
        document: as ``phonebit bench --profile --json`` prints it.

    Returns:
        The median less the sum of its layers, in ms; not below 0, since both are measured apart.
    """
    of_layers = sum(float(layer["latency_ms"]) for layer in document["layers"])
    return max(0.0, float(document["median_ms"]) - of_layers)
