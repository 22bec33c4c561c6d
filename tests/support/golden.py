"""The golden files' networks: together they hold every operator, epilogue operation and threshold.

All numbers are exactly representable, so that every correct engine is equal to the last bit,
except in values whose names end in ``_tolerance``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import BinaryConv2D, BitPlanes, Elementwise, Input
from phonebit.converter.ops.epilogue import AddTensor, Count, Epilogue, ScaleBias
from phonebit.converter.reader import read_graph
from phonebit.format.contents import FileContents
from phonebit.format.reader import read_contents
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing, Resize
from support.engine_net import SAME3, Net

Array = NDArray[Any]
FOLDER: Final = Path(__file__).parents[1] / "golden" / "v1"
PLANNED: Final = "planned_classifier"
"""``tiny_classifier`` with plans for two devices: layers cut in both ways, and a chain."""
PLANES: Final = "binary_planes_33"
NAMES: Final = sorted({path.stem for path in FOLDER.glob("*.pbit")} - {PLANNED})


def golden_graph(name: str) -> Graph:
    """A new graph of a golden file; its layers are of a source's layers of the same names."""
    if name == PLANES:
        return binary_planes()
    graph = read_graph(FOLDER / f"{name}.pbit")
    graph.name, graph.origins = name, {}
    for node in graph.nodes:
        node.sources = [] if isinstance(node.op, Input) else [node.name]
    return graph


def golden_graphs() -> dict[str, Graph]:
    """All of them by name, and one with the operators that no golden file has."""
    return {name: golden_graph(name) for name in (*NAMES, PLANES)}


def binary_planes() -> Graph:
    """Levels of two bits as two planes, and the weighted sum of their convolutions."""
    net = Net(PLANES)
    x = net.input("x", (5, 4, 33))
    thresholds = np.sort(net.dyadic(33, 3, limit=16), axis=1)
    level = net.op("level", Elementwise(Epilogue([Count(thresholds)])), x)
    net.graph.nodes.append(Node("bits", BitPlanes(2), [level], planes=["bit0", "bit1"]))
    signs = net.signs(40, 3, 3, 33)
    low = net.op("low", BinaryConv2D(signs, SAME3, 1, -1), "bit0")
    twice = ScaleBias(np.full(40, 2, np.float32), np.zeros(40, np.float32))
    high = BinaryConv2D(signs, SAME3, 1, -1, Epilogue([twice, AddTensor(1)]))
    return net.done(net.op("sum", high, "bit1", low), level)


def tiny_classifier() -> Graph:
    """A whole little network: u8 image to ten logits."""
    return golden_graph("tiny_classifier")


def described_classifier() -> Graph:
    """``tiny_classifier`` with class names and a rule for images: the optional sections."""
    graph = tiny_classifier()
    graph.labels = [f"class {index}" for index in range(10)]
    rule = Preprocessing((-1.0, 1.0), 0.125, 0.5, resize=Resize.LETTERBOX, fill_level=114)
    graph.preprocessing = dict.fromkeys(graph.inputs, rule)
    return graph


def planned_classifier() -> FileContents:
    """A file with plans."""
    return read_contents(FOLDER / f"{PLANNED}.pbit")


def integer_inputs(graph: Graph, batch: int = 2, seed: int = 0) -> dict[str, Array]:
    """Seeded inputs with small integers (exact zeros among them), for float and u8 inputs alike."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        if kind.dtype == DataType.U8:
            inputs[name] = rng.integers(0, 256, (batch, *kind.shape)).astype(np.uint8)
        else:
            inputs[name] = rng.integers(-3, 4, (batch, *kind.shape)).astype(np.float32)
    return inputs
