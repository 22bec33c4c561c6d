"""Hand-made source graphs for the tests of single passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.infer import infer
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Node, Operator, TensorType
from phonebit.converter.ops import BatchNorm, Elementwise, Input
from phonebit.converter.ops.epilogue import Epilogue, EpilogueOp
from phonebit.converter.origins import origins_in
from phonebit.converter.passes.base import Pass, PassLog, copy_graph, refresh_types
from phonebit.converter.reader import graph_from_bytes
from phonebit.format.records import DataType


class Source:
    """A source graph under construction; values are called like their nodes."""

    def __init__(
        self, shape: tuple[int, int, int] = (6, 5, 4), dtype: DataType = DataType.F32
    ) -> None:
        self.rng = np.random.default_rng(3)
        self.graph = Graph("g", [Node("x", Input(), [], value="x")], {}, ["x"], [])
        self.graph.types["x"] = TensorType(shape, dtype)

    def add(self, name: str, op: Operator, *inputs: str) -> str:
        self.graph.nodes.append(Node(name, op, list(inputs), value=name, sources=[name]))
        self.graph.types = infer(self.graph)
        return name

    def step(self, name: str, step: EpilogueOp, *inputs: str) -> str:
        return self.add(name, Elementwise(Epilogue([step])), *inputs)

    def done(self, *outputs: str) -> Graph:
        self.graph.outputs = list(outputs)
        return self.graph

    def signs(self, *shape: int) -> NDArray[np.float32]:
        return self.rng.choice(np.array([-1, 1], np.float32), shape)

    def norm(self, channels: int, gamma: Sequence[float] | None = None) -> BatchNorm:
        """Batch norm with exactly representable numbers; gamma repeats the given ones."""
        gammas = np.resize(np.array(gamma or [1.0, -0.5, 2.0, 0.0], np.float32), channels)
        beta, mean = (self.rng.integers(-4, 5, (2, channels)) * 0.25).astype(np.float32)
        return BatchNorm(gammas, beta, mean, np.full(channels, 0.75, np.float32), 0.25)


def applied(rewrite: Pass, graph: Graph, log: PassLog | None = None) -> Graph:
    """The graph after one pass, with equal outputs on integer inputs (which this checks)."""
    result = copy_graph(graph)
    rewrite.run(result, log or PassLog())
    refresh_types(result)
    x = integers(graph)
    before, after = run(graph, x), run(result, x)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    return result


def integers(graph: Graph) -> dict[str, NDArray[np.float32] | NDArray[np.uint8]]:
    rng = np.random.default_rng(5)
    kind = graph.types["x"]
    if kind.dtype == DataType.U8:
        return {"x": rng.integers(0, 256, (2, *kind.shape)).astype(np.uint8)}
    return {"x": rng.integers(-3, 4, (2, *kind.shape)).astype(np.float32)}


def check_origins(content: bytes) -> None:
    """Names that nobody took before say what the file's metadata say."""
    graph = graph_from_bytes(content)
    bits = [name for name, kind in graph.types.items() if kind.dtype == DataType.BIT]
    assert origins_in({}, bits) == graph.origins


def kinds(graph: Graph) -> list[str]:
    """Operators in execution order, inputs left out."""
    return [type(node.op).__name__ for node in graph.nodes if node.inputs]


def node_of(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)
