"""Small ONNX models made exact, and comparison of their source graphs with their execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from phonebit.converter.importers.onnx.importer import OnnxSource, open_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph

Array = NDArray[Any]
Shape = Sequence[int | str]
DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general")


def halves(*shape: int, seed: int = 3, maximum: int = 8) -> Array:
    """Multiples of 1/8, zeros among them: sums of their products are exact in float32."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-maximum, maximum + 1, shape) / 8).astype(np.float32)


def floats(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def integers(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of nodes; results have no declared shapes."""
    stored = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        stored,
    )
    versions = [helper.make_opsetid("", opset)]
    versions += [helper.make_opsetid(domain, 1) for domain in DOMAINS]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def single(
    op: str,
    shape: Shape,
    *constants: Array | None,
    opset: int = 17,
    domain: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    """One node that reads the input x, then constants; None is an input that is left out."""
    named = {f"c{i}": array for i, array in enumerate(constants) if array is not None}
    names = ["" if array is None else f"c{i}" for i, array in enumerate(constants)]
    node = helper.make_node(op, ["x", *names], ["y"], name=op.lower(), domain=domain, **attributes)
    return model([node], {"x": shape}, constants=named, opset=opset)


def negated(made: onnx.ModelProto) -> onnx.ModelProto:
    """With the negative of the output, a value of its own whatever the output is only a view of."""
    changed = onnx.ModelProto()
    changed.CopyFrom(made)
    changed.graph.node.append(helper.make_node("Neg", ["y"], ["z"], name="neg"))
    changed.graph.output[0].name = "z"
    return changed


def images(graph: Graph, count: int = 2, seed: int = 5) -> dict[str, Array]:
    """Multiples of 1/2 from -4 to 4, zeros among them."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.integers(-8, 9, (count, *graph.types[name].shape)) / 2).astype(np.float32)
        for name in graph.inputs
    }


def assert_equal_to_onnx(
    source: OnnxSource | onnx.ModelProto,
    inputs: dict[str, Array] | None = None,
    tolerance: float = 0.0,
) -> Graph:
    """The interpreter's values are the model's, for every value of the graph that it has."""
    if isinstance(source, onnx.ModelProto):
        source = open_onnx(source)
    graph = source.graph
    inputs = inputs or images(graph)
    expected = source.runner().activations(inputs)
    values = run(graph, inputs, list(graph.types))
    assert len(expected) > len(inputs)
    for name, array in expected.items():
        assert values[name].dtype == array.dtype, name
        np.testing.assert_allclose(values[name], array, rtol=0, atol=tolerance, err_msg=name)
    return graph


def kinds(graph: Graph) -> list[str]:
    """The operators' names, in order, without the inputs."""
    return [type(node.op).__name__ for node in graph.nodes if node.inputs]
