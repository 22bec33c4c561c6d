"""Small ONNX models in exact arithmetic, so that results are equal bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from support.onnx_models import halves

Array = NDArray[Any]

WIDTH = 32
CLASSES = 5
MAP = ("N", WIDTH, 6, 7)


class Nodes:
    """A chain of nodes, each of which reads what the one before gives.

    Attributes:
        value: what the last of them gives.
    """

    def __init__(self, value: str = "x") -> None:
        self.value = value
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {"zero": np.float32(0), "minus": np.float32(-1)}
        self.constants["one"] = np.float32(1)

    def add(self, op: str, *others: Array | str, count: int = 1, **attributes: Any) -> Nodes:
        names = []
        for other in others:
            names.append(other if isinstance(other, str) else f"c{len(self.constants)}")
            if not isinstance(other, str):
                self.constants[names[-1]] = other
        at = len(self.nodes)
        given = [f"v{at}", *(f"v{at}_{i}" for i in range(1, count))]
        self.nodes.append(
            helper.make_node(op, [self.value, *names], given, name=f"{op}{at}", **attributes)
        )
        self.value = given[0]
        return self

    def binary(self, seed: int) -> Nodes:
        """Signs of the map by a kernel of signs."""
        kernel = np.where(halves(WIDTH, WIDTH, 3, 3, seed=seed) >= 0, 1, -1).astype(np.float32)
        self.add("GreaterOrEqual", "zero").add("Where", "one", "minus")
        return self.add("Conv", kernel, pads=[1, 1, 1, 1])

    def scores(self) -> Nodes:
        """Of the sum of each channel."""
        self.add("ReduceSum", np.array([2, 3], np.int64), keepdims=0)
        return self.add("MatMul", halves(WIDTH, CLASSES, seed=9))

    def model(
        self,
        outputs: Sequence[str] = (),
        inputs: Mapping[str, Sequence[int | str]] | None = None,
        kind: int = TensorProto.FLOAT,
        opset: int = 17,
    ) -> onnx.ModelProto:
        given = inputs or {"x": MAP}
        graph = helper.make_graph(
            self.nodes,
            "small",
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in given.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs or [self.value]],
            [numpy_helper.from_array(np.asarray(a), name) for name, a in self.constants.items()],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )


def whole() -> onnx.ModelProto:
    """Converts as it is."""
    return Nodes().binary(1).binary(2).scores().model()


def sorted_on_the_way() -> onnx.ModelProto:
    """Sorts the channels in between, and chooses a class at the end."""
    nodes = Nodes().binary(1).binary(2)
    nodes.add("TopK", np.array([WIDTH], np.int64), count=2, axis=1).binary(3).scores()
    scores = nodes.value
    nodes.add("ArgMax", axis=1)
    return nodes.model([scores, nodes.value])


def numbers(batch: int, seed: int = 0, shape: Sequence[int | str] = MAP) -> Array:
    """Small whole numbers as floats."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in shape[1:]]
    return rng.integers(-8, 9, (batch, *sizes)).astype(np.float32)
