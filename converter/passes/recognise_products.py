"""Products of two quantized activations become products of bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, product

import numpy as np

from phonebit.converter.ir import Graph, Node, Operator, Window
from phonebit.converter.ops import BinaryConv2D, Elementwise, MatMul, Reshape, SelectChannels
from phonebit.converter.ops.epilogue import AddTensor, Epilogue, ScaleBias
from phonebit.converter.passes.base import Pass, PassLog, fresh_value, refresh_types, replace_node
from phonebit.converter.passes.planes import planes_of


class RecogniseProducts(Pass):
    """Multiplies bit-planes where both operands of a matrix product are quantized.

    Given::

        y = matmul(a, b)    # a = u + s (a0 + a1 + ...), b = v + t (b0 + ...), bits of -1/+1

    Result::

        y = s t (matmul(a0, b0) + matmul(a1, b0) + ...)    # xor and popcount
          + u t * (sums of b's columns) + v s * (sums of a's rows) + K u v

    Attention of {0, 1} by {-1, +1} has one plane each: (matmul(a0, b0) + sums of b's columns) / 2.
    The sums are small binary convolutions. Scales and offsets that differ between channels stay
    float.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, MatMul) and node.op.transposed:
                rewrite = _Rewrite.of(graph, node, node.op)
                if rewrite is None:
                    log.not_binary[node.name] = "an operand is not quantized to even levels"
                elif rewrite.is_needed:
                    replace_node(graph, node, *rewrite.nodes())
            elif isinstance(node.op, MatMul):
                log.not_binary[node.name] = "an operand is not quantized"
        refresh_types(graph)


@dataclass(frozen=True)
class _Factor:
    """An operand as offset + the sum of scales[i] * bits[i]."""

    bits: list[str]
    scales: list[float]
    offset: float

    @classmethod
    def of(cls, graph: Graph, value: str) -> _Factor | None:
        planes = planes_of(graph, value)
        if planes is None or np.ptp(planes.offset) or np.any(np.ptp(planes.scales, axis=1)):
            return None
        return cls(planes.bits, [float(s) for s in planes.scales[:, 0]], float(planes.offset[0]))


@dataclass
class _Rewrite:
    """The nodes that one product becomes."""

    graph: Graph
    node: Node
    op: MatMul
    a: _Factor
    b: _Factor
    added: list[Node] = field(default_factory=list)

    @classmethod
    def of(cls, graph: Graph, node: Node, op: MatMul) -> _Rewrite | None:
        a, b = (_Factor.of(graph, value) for value in node.inputs)
        return None if a is None or b is None else cls(graph, node, op, a, b)

    @property
    def is_needed(self) -> bool:
        """Whether an operand is not a bit-plane already."""
        return self.node.inputs != [self.a.bits[0], self.b.bits[0]]

    def nodes(self) -> list[Node]:
        """In execution order; the last defines the product's value."""
        a, b = self.a, self.b
        # Smaller terms come first, so that each is added to one that is as large, or larger.
        terms = [*self._column_sums()] if a.offset else []
        terms += [*self._row_sums()] if b.offset else []
        for (i, s), (j, t) in product(enumerate(a.scales), enumerate(b.scales)):
            terms.append((self._emit(self.op, [a.bits[i], b.bits[j]], f"sum{i}{j}"), s * t))
        depth = self.graph.types[self.node.inputs[0]].shape[2] // self.op.groups
        bias, total = depth * a.offset * b.offset, ""
        channels = self.op.groups * self._columns
        for value, scale in terms:
            scales = np.full(channels, scale, np.float32), np.full(channels, bias, np.float32)
            term = self._emit(Elementwise(Epilogue([ScaleBias(*scales)])), [value], "term")
            add = Elementwise(Epilogue([AddTensor(1)]))
            total = self._emit(add, [term, total], "total") if total else term
            bias = 0.0
        first = next(node for node in self.added if isinstance(node.op, MatMul))
        first.name, self.added[-1].name = self.node.name, f"{self.node.name}/scale"
        self.added[-1].value = self.node.value
        return self.added

    @property
    def _columns(self) -> int:
        """Of each group."""
        height, width, _ = self.graph.types[self.node.inputs[1]].shape
        return height * width

    def _column_sums(self) -> Iterator[tuple[str, float]]:
        """What ones as the first operand would make, (1, 1, groups * columns)."""
        groups, columns = self.op.groups, self._columns
        order = np.arange(columns * groups).reshape(columns, groups).T.reshape(-1).astype(np.int32)
        for bits, scale in zip(self.b.bits, self.b.scales, strict=True):
            flat = self._emit(Reshape((1, 1, order.size)), [self._group_sums(bits)], "flat")
            yield self._emit(SelectChannels(order), [flat], "column_sums"), scale * self.a.offset

    def _row_sums(self) -> Iterator[tuple[str, float]]:
        """What ones as the second operand would make."""
        each = np.repeat(np.arange(self.op.groups, dtype=np.int32), self._columns)
        for bits, scale in zip(self.a.bits, self.a.scales, strict=True):
            value = self._emit(SelectChannels(each), [self._group_sums(bits)], "row_sums")
            yield value, scale * self.b.offset

    def _group_sums(self, bits: str) -> str:
        """The sum of each pixel's bits in each group."""
        groups, channels = self.op.groups, self.graph.types[bits].shape[2]
        ones = np.ones((groups, 1, 1, channels // groups), np.int8)
        return self._emit(BinaryConv2D(ones, Window((1, 1)), groups), [bits], "bits")

    def _emit(self, op: Operator, inputs: list[str], what: str) -> str:
        taken = {node.name for node in self.added}
        names = (f"{self.node.value}/{what}{number or ''}" for number in count())
        name = next(n for n in names if n not in taken and fresh_value(self.graph, n) == n)
        self.added.append(Node(name, op, inputs, value=name, sources=self.node.sources))
        return name
