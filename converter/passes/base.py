"""What a pass is, and the graph surgery that passes share.

Operators are shared between the graphs before and after a pass, so a pass never changes an operator
in place: it makes a new one (``dataclasses.replace``) and puts it into a node of its own graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, Operator
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.ops.with_epilogue import EpilogueOperator

OperatorType = TypeVar("OperatorType")

ZeroFate = Literal["impossible", "exact", "counted as +"]
"""impossible: no value before the sign is exactly zero. exact: zeros keep their value, at the cost
of a second bit-plane. counted as +: they count as positive, and the report says so."""


@dataclass
class PassLog:
    """What passes tell the conversion report.

    Args:
        notes: Sentences about the network as a whole.
        not_binary: By node name, why a convolution did not become binary.
        zeros: By the name of each sign that has a value of its own for an exact zero, what became
            of that value.
    """

    notes: list[str] = field(default_factory=list)
    not_binary: dict[str, str] = field(default_factory=dict)
    zeros: dict[str, ZeroFate] = field(default_factory=dict)


class Pass(ABC):
    """One rewrite. The pipeline hands it a private copy of the graph with inferred types.

    Attributes:
        rounds: Whether the rewrite rearranges float arithmetic, so that values may change by
            rounding; then a sum that was exactly zero may come out on the other side of it.
    """

    rounds: bool = False

    @abstractmethod
    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place; values that keep their name keep their meaning."""

    @property
    def name(self) -> str:
        """The class's name, by which errors speak of the pass."""
        return type(self).__name__


def copy_graph(graph: Graph) -> Graph:
    """A graph with its own nodes and lists; operators are shared."""
    nodes = [
        replace(node, inputs=list(node.inputs), sources=list(node.sources)) for node in graph.nodes
    ]
    return replace(
        graph,
        nodes=nodes,
        types=dict(graph.types),
        origins=dict(graph.origins),
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
    )


def refresh_types(graph: Graph) -> None:
    """Infers the types anew after values were added."""
    graph.types = infer(graph)


def index_of(graph: Graph, node: Node) -> int:
    """Position of this very node in the execution order."""
    return graph.place(node)


def replace_node(graph: Graph, node: Node, *replacements: Node) -> None:
    """Puts ``replacements`` where ``node`` was."""
    index = index_of(graph, node)
    graph.nodes[index : index + 1] = replacements


def insert_before(graph: Graph, node: Node, *added: Node) -> None:
    """Puts ``added`` directly before ``node``."""
    index = index_of(graph, node)
    graph.nodes[index:index] = added


def remove_node(graph: Graph, node: Node) -> None:
    """Takes this very node out."""
    del graph.nodes[index_of(graph, node)]


def rename_uses(graph: Graph, old: str, new: str) -> None:
    """Makes every reader of ``old`` read ``new``."""
    for node in graph.consumers(old):
        graph.rewire(node, [new if name == old else name for name in node.inputs])


def fresh_value(graph: Graph, wanted: str) -> str:
    """``wanted``, or with a number after it if a value of that name exists."""
    name, number = wanted, 2
    while graph.defines(name):
        name, number = f"{wanted}:{number}", number + 1
    return name


def only_consumer(graph: Graph, value: str) -> Node | None:
    """The one node that reads ``value``, once; None if it is read elsewhere or returned."""
    if value in graph.outputs:
        return None
    readers = graph.consumers(value)
    if len(readers) != 1 or readers[0].inputs.count(value) != 1:
        return None
    return readers[0]


def producer_of(
    graph: Graph, value: str, kind: type[OperatorType]
) -> tuple[Node, OperatorType] | None:
    """The node that defines ``value`` and its operator, if that is of the given kind."""
    node = graph.producer(value)
    return (node, node.op) if isinstance(node.op, kind) else None


def with_op(node: Node, op: Operator) -> Node:
    """The same node with another operator."""
    return replace(node, op=op)


def with_epilogue(node: Node, epilogue: Epilogue) -> Node:
    """The same node with another epilogue."""
    assert isinstance(node.op, EpilogueOperator)
    return replace(node, op=node.op.with_epilogue(epilogue))


def merged_sources(*nodes: Node) -> list[str]:
    """The framework layers of several nodes in order, each once."""
    return list(dict.fromkeys(name for node in nodes for name in node.sources))
