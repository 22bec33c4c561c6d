"""What the passes have in common that store float weights in fewer bits."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D
from phonebit.converter.passes.base import Pass, PassLog, replace_node, with_op
from phonebit.format.records import DataType


class StoreWeights(Pass):
    """Rewrites the real convolutions of a graph one by one.

    These passes change what the network computes, and so one of them is the last: whatever reads
    the graph after it (the reference interpreter, the writer, verification) sees the rounded
    weights.
    """

    type_name: ClassVar[str]
    weight_bytes: ClassVar[int]

    @abstractmethod
    def stored(self, op: Conv2D) -> tuple[Conv2D, float] | str:
        """One convolution.

        Returns:
            The convolution with its weights rounded, and the largest change of a weight as a share
            of its filter's largest; or why the weights stay float32.
        """

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place and notes what became of how many weights."""
        changes: dict[str, float] = {}
        count = 0
        for node in list(graph.nodes):
            if not has_real_weights(graph, node):
                continue
            assert isinstance(node.op, Conv2D)
            found = self.stored(node.op)
            if isinstance(found, str):
                log.notes.append(f"{node.name}: weights stay float32: {found}")
                continue
            op, changes[node.name] = found
            count += op.weights.size
            replace_node(graph, node, with_op(node, op))
        log.notes.append(self._summary(changes, count))

    def _summary(self, changes: dict[str, float], count: int) -> str:
        if not changes:
            return f"no layer's weights are stored as {self.type_name}"
        worst = max(changes, key=lambda name: changes[name])
        return (
            f"{len(changes)} layer{'s' if len(changes) > 1 else ''} with weights stored as "
            f"{self.type_name}: {self.weight_bytes * count / 1e3:.1f} kB instead of "
            f"{4 * count / 1e3:.1f}; rounding changes a weight by at most {changes[worst]:.1e} "
            f"of its filter's largest ({worst})"
        )


def has_real_weights(graph: Graph, node: Node) -> bool:
    """Whether a node is a convolution of float values with weights other than -1 and +1.

    A convolution that stands for no layer of the source holds the converter's own constants, such
    as what the border and window sums add: a few bytes, in which rounding costs whole decisions.
    """
    return (
        isinstance(node.op, Conv2D)
        and bool(node.sources)
        and graph.types[node.inputs[0]].dtype == DataType.F32
        and node.op.stored_type == DataType.F32
    )
