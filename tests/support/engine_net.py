"""Engine graphs node by node, with seeded dyadic parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import Elementwise, Input
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.format.records import DataType

SAME3 = Window((3, 3), pads=(1, 1, 1, 1))


class Net:
    """Adds nodes one by one; values are called like the nodes, bits get ``/bits``."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.rng = np.random.default_rng([seed, *name.encode()])
        self.graph = Graph(name, [], {}, [], [])

    def input(self, name: str, shape: tuple[int, int, int], dtype: DataType = DataType.F32) -> str:
        self.graph.nodes.append(Node(name, Input(), [], value=name))
        self.graph.types[name] = TensorType(shape, dtype)
        self.graph.inputs.append(name)
        return name

    def op(self, name: str, op: Operator, *inputs: str, value: bool = True) -> str:
        """Adds a node; returns its value's name or, with ``value=False``, its bits' name."""
        epilogue = getattr(op, "epilogue", None)
        bits = f"{name}/bits" if epilogue is not None and epilogue.threshold is not None else None
        value_name = name if value else None
        node = Node(name, op, list(inputs), value=value_name, bits=bits, sources=[name])
        self.graph.nodes.append(node)
        self.graph.types = infer(self.graph)
        return name if value else f"{name}/bits"

    def done(self, *outputs: str) -> Graph:
        self.graph.outputs = list(outputs)
        self.graph.types = infer(self.graph)
        return self.graph

    def signs(self, *shape: int) -> NDArray[np.int8]:
        return self.rng.choice(np.array([-1, 1], np.int8), shape)

    def dyadic(self, *shape: int, limit: int = 16, step: float = 1 / 8) -> NDArray[np.float32]:
        return (self.rng.integers(-limit, limit + 1, shape) * step).astype(np.float32)

    def thresholds(self, channels: int, reach: int) -> NDArray[np.int32]:
        return self.rng.integers(-reach, reach + 1, channels).astype(np.int32)

    def scale_bias(self, channels: int) -> ScaleBias:
        return ScaleBias(self.dyadic(channels, limit=8), self.dyadic(channels, limit=32))


def sign_of(net: Net, value: str, name: str = "sign") -> str:
    """Bits of a float value: v >= 0."""
    channels = net.graph.types[value].shape[2]
    zeros = np.zeros(channels, np.float32)
    return net.op(name, Elementwise(Epilogue([], zeros)), value, value=False)
