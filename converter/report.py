"""The conversion report: what became of every layer, and what it costs before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from phonebit.converter.cost import (
    float_bytes,
    macs,
    parameter_count,
    stored_bytes,
)
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import BinaryConv2D, BinaryDepthwiseConv2D, Input, MatMul
from phonebit.converter.ops.convolution import Convolution
from phonebit.converter.passes.base import PassLog
from phonebit.display import escape_markup as escape
from phonebit.display import html_table, printable
from phonebit.format.records import DataType
from phonebit.layer_info import TensorDtype, TensorInfo

if TYPE_CHECKING:
    from rich.table import Table

SCHEMA_VERSION = 1
TENSOR_DTYPES: Final[dict[DataType, TensorDtype]] = {
    DataType.BIT: "bit",
    DataType.U8: "u8",
    DataType.F32: "f32",
}
TEXT_COLUMNS = ("layer", "kind", "binary", "output")
NUMBER_COLUMNS = ("MMAC", "added", "kB before", "kB after")
LAST_COLUMN = "fused layers, or why not binary"


@dataclass
class LayerReport:
    """One op of the converted network.

    Args:
        name: The framework's name of the layer that it came from.
        kind: Engine operator.
        sources: All framework layers fused into it.
        binary: Whether its multiplications are of -1/+1 by -1/+1; None where there are none.
        reason: Why it is not binary; empty if it is, or has no weights.
        expected_binary: Whether the framework quantized both its kernel and its input.
        macs: Multiply-accumulates of the framework's layer for one image.
        added_macs: Those that the file has in addition: more bit-planes, window sums, borders.
        parameters: Trained numbers of its framework layers.
        bytes_before: Their size as float32.
        bytes_after: Size of its constants in the file.
        output_shape: (height, width, channels).
    """

    name: str
    kind: str
    sources: list[str]
    binary: bool | None
    reason: str
    expected_binary: bool
    macs: int
    added_macs: int
    parameters: int
    bytes_before: int
    bytes_after: int
    output_shape: tuple[int, int, int]


@dataclass(repr=False)
class ConversionReport:
    """What ``phonebit.convert`` returns.

    Args:
        name: The network's name.
        layers: One entry per op of the file, in execution order.
        size_before_bytes: All trained parameters as float32.
        size_after_bytes: The whole file.
        notes: What else there is to know.
        zeros: By the name of each sign whose zero is 0 (PyTorch's): "impossible", "exact" or
            "counted as +".
        output_path: Where the file was written, or None.
        inputs: What ``Network.forward`` takes, in which axes.
        outputs: What it returns.
    """

    name: str
    layers: list[LayerReport]
    size_before_bytes: int
    size_after_bytes: int
    notes: list[str] = field(default_factory=list)
    zeros: dict[str, str] = field(default_factory=dict)
    output_path: str | None = None
    inputs: list[TensorInfo] = field(default_factory=list)
    outputs: list[TensorInfo] = field(default_factory=list)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the network itself for one image."""
        return sum(layer.macs for layer in self.layers)

    @property
    def added_macs(self) -> int:
        """What the file computes in addition."""
        return sum(layer.added_macs for layer in self.layers)

    @property
    def binary_macs(self) -> int:
        """Those of them that multiply -1/+1 by -1/+1."""
        return sum(layer.macs for layer in self.layers if layer.binary)

    @property
    def binary_mac_share(self) -> float:
        """Share of the multiply-accumulates that is binary, 0..1."""
        return self.binary_macs / self.macs if self.macs else 0.0

    @property
    def missed(self) -> list[LayerReport]:
        """Layers that the framework trained as binary and that did not become so."""
        return [layer for layer in self.layers if layer.expected_binary and not layer.binary]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "output_path": self.output_path,
            "inputs": [asdict(info) for info in self.inputs],
            "outputs": [asdict(info) for info in self.outputs],
            "size_before_bytes": self.size_before_bytes,
            "size_after_bytes": self.size_after_bytes,
            "macs": self.macs,
            "added_macs": self.added_macs,
            "binary_macs": self.binary_macs,
            "binary_mac_share": self.binary_mac_share,
            "notes": self.notes,
            "zeros": self.zeros,
            "layers": [asdict(layer) for layer in self.layers],
        }

    def to_json(self) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        """One line."""
        written = f"written to '{self.output_path}'" if self.output_path else "not written"
        text = f"'{self.name}', {len(self.layers)} layers, {self._summary()[0]}, {written}"
        return f"ConversionReport({printable(text)})"

    def _repr_html_(self) -> str:
        """For notebooks: the table of ``render``."""
        titles = [*TEXT_COLUMNS, *NUMBER_COLUMNS, LAST_COLUMN]
        first = len(TEXT_COLUMNS)
        numbers = range(first, first + len(NUMBER_COLUMNS))
        return html_table("; ".join([self.name, *self._summary()]), titles, self._rows(), numbers)

    def render(self) -> Table:
        """The report as a table for the terminal."""
        from rich.table import Table

        table = Table(
            title=escape(self.name),
            caption="\n".join(map(escape, self._summary())),
            title_justify="left",
            caption_justify="left",
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
        )
        for title in TEXT_COLUMNS:
            table.add_column(title)
        for title in NUMBER_COLUMNS:
            table.add_column(title, justify="right")
        table.add_column(LAST_COLUMN)
        for layer, row in zip(self.layers, self._rows(), strict=True):
            missed = layer.expected_binary and layer.binary is False
            table.add_row(*map(escape, row), style="red" if missed else None)
        return table

    def _rows(self) -> Iterator[list[str]]:
        for layer in self.layers:
            yield [
                layer.name,
                layer.kind,
                {None: "", True: "yes", False: "no"}[layer.binary],
                "x".join(str(side) for side in layer.output_shape),
                f"{layer.macs / 1e6:.2f}" if layer.macs else "",
                f"{layer.added_macs / 1e6:.2f}" if layer.added_macs else "",
                f"{layer.bytes_before / 1e3:.1f}" if layer.bytes_before else "",
                f"{layer.bytes_after / 1e3:.1f}" if layer.bytes_after else "",
                layer.reason or ", ".join(layer.sources[1:]),
            ]

    def _summary(self) -> list[str]:
        added = (
            f"{self.added_macs / 1e6:.1f} are added (planes, window sums, borders); "
            if self.added_macs
            else ""
        )
        lines = [
            f"{self.binary_mac_share:.1%} of {self.macs / 1e6:.1f} MMAC are binary; {added}"
            f"{self.size_before_bytes / 1e3:.1f} kB become {self.size_after_bytes / 1e3:.1f} kB"
        ]
        lines += [f"input {info.name}: {info.axes_text}" for info in self.inputs]
        lines += [f"output {info.name}: {info.axes_text}" for info in self.outputs]
        return [*lines, *self.notes]


def build_report(
    source: Graph, engine: Graph, log: PassLog, size_after_bytes: int
) -> ConversionReport:
    """Puts source and engine graph side by side.

    Args:
        source: The network as imported, with its nodes' ``sources`` filled in.
        engine: What the pipeline made of it.
        log: What the passes had to say.
        size_after_bytes: Size of the file.
    """
    nodes = [node for node in engine.nodes if not isinstance(node.op, Input)]
    counts = _trained_parameters(source, nodes)
    own = {node.name: macs(source, node) for node in source.nodes}
    layers = [
        _layer(engine, node, log, count, own.get(node.name, 0), node.name in source.expected_binary)
        for node, count in zip(nodes, counts, strict=True)
    ]
    report = ConversionReport(
        engine.name,
        layers,
        sum(float_bytes(node.op) for node in source.nodes),
        size_after_bytes,
        [*source.notes, *log.notes],
        dict(log.zeros),
        inputs=[_tensor(engine, name) for name in engine.inputs],
        outputs=[_tensor(engine, name) for name in engine.outputs],
    )
    report.notes += [
        f"{layer.name}: trained as binary, but {layer.reason}" for layer in report.missed
    ]
    return report


def _tensor(graph: Graph, name: str) -> TensorInfo:
    kind = graph.types[name]
    dtype = TENSOR_DTYPES[kind.dtype]
    return TensorInfo(name, dtype, kind.shape, graph.arrays.get(name, ()))


def _trained_parameters(source: Graph, nodes: list[Node]) -> list[int]:
    """Trained numbers of each engine node, each counted once.

    A layer may end up in several nodes (its input quantizer in one, its convolution in another):
    the node that bears its name claims first, then convolutions, then the rest.
    """
    counts: dict[str, int] = {}
    for node in source.nodes:
        owner = (node.sources or [node.name])[0]
        counts[owner] = counts.get(owner, 0) + parameter_count(node.op)
    claimed = [counts.pop(node.name, 0) for node in nodes]
    for index in sorted(
        range(len(nodes)), key=lambda index: not isinstance(nodes[index].op, Convolution)
    ):
        claimed[index] += sum(counts.pop(name, 0) for name in nodes[index].sources)
    return claimed


def _layer(
    graph: Graph, node: Node, log: PassLog, count: int, own_macs: int, expected: bool
) -> LayerReport:
    op = node.op
    all_macs = macs(graph, node)
    binary = None
    if isinstance(op, Convolution):
        binary = isinstance(op, BinaryConv2D | BinaryDepthwiseConv2D)
    elif isinstance(op, MatMul):
        binary = graph.types[node.inputs[0]].dtype == DataType.BIT
    return LayerReport(
        name=node.name,
        kind=type(op).__name__,
        sources=node.sources or [node.name],
        binary=binary,
        reason=log.not_binary.get(node.name, "") if binary is False else "",
        expected_binary=expected,
        macs=min(own_macs, all_macs),
        added_macs=max(all_macs - own_macs, 0),
        parameters=count,
        bytes_before=4 * count,
        bytes_after=stored_bytes(node),
        output_shape=graph.types[node.outputs[0]].shape,
    )
