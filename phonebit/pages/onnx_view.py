"""A ``.pbit`` file as an ONNX graph for viewers such as Netron. It is not meant to run."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node, TensorType, Window
from phonebit.converter.ops import Input
from phonebit.converter.ops.base import arrays_of
from phonebit.converter.ops.epilogue.tensors import TensorOp
from phonebit.converter.ops.with_epilogue import epilogue_of
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

DOMAIN: Final = "phonebit"
IR_VERSION: Final = 8
"""Of ONNX 1.10, which every viewer reads."""


def onnx_view(graph: Graph, origin: str) -> bytes:
    """The view of a file.

    A node is an operator of the file, in the domain "phonebit", with its window and its epilogue as
    attributes. Bits are booleans. Constants are initialisers of the right shape without values:
    sparse ones that list none.

    Args:
        graph: the file's engine graph.
        origin: the file's name, for the documentation in the view.

    Returns:
        An ONNX model.

    Raises:
        ConversionError: the package onnx is not installed.
    """
    try:
        import onnx
        from onnx import helper
    except ImportError as error:
        raise ConversionError(
            "the package onnx is not installed", hint="pip install 'phonebit[onnx]'"
        ) from error
    nodes = [node for node in graph.nodes if not isinstance(node.op, Input)]
    ends = {*graph.inputs, *graph.outputs}
    view = helper.make_graph(
        [_node(node) for node in nodes],
        graph.name or "network",
        [_value(name, graph.types[name]) for name in graph.inputs],
        [_value(name, graph.types[name]) for name in graph.outputs],
        value_info=[_value(name, kind) for name, kind in graph.types.items() if name not in ends],
        sparse_initializer=[
            _without_values(name, array) for node in nodes for name, array in _constants(node)
        ],
        doc_string=f"A view of {origin}, which phonebit runs. Maps are (N, height, width, channels)"
        "; bits are true for +1. Initialisers have their shape, but not their values.",
    )
    model = helper.make_model(
        view, producer_name="phonebit", opset_imports=[onnx.helper.make_opsetid(DOMAIN, 1)]
    )
    model.ir_version = IR_VERSION
    content: bytes = model.SerializeToString()
    return content


def _node(node: Node) -> Any:
    from onnx import helper

    inputs = [*node.inputs, *(name for name, _ in _constants(node))]
    operator = type(node.op).__name__
    made = helper.make_node(
        operator, inputs, list(node.outputs), node.name, domain=DOMAIN, **_attributes(node)
    )
    fused = [source for source in node.sources if source != node.name]
    if fused:
        made.doc_string = f"with {', '.join(fused)}"
    return made


def _attributes(node: Node) -> dict[str, Any]:
    """An operator's numbers, its window as ONNX calls it, and its epilogue, an operation each."""
    found: dict[str, Any] = {}
    for field in fields(node.op):
        value = getattr(node.op, field.name)
        if isinstance(value, Window):
            found |= {"kernel_shape": value.kernel, "strides": value.strides, "pads": value.pads}
            found["dilations"] = value.dilation
        elif isinstance(value, enum.Enum):
            found[field.name] = value.name.lower()
        elif isinstance(value, bool | int | float | str):
            found[field.name] = int(value) if isinstance(value, bool) else value
        elif isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
            found[field.name] = value
    epilogue = epilogue_of(node.op)
    if epilogue is not None:
        steps = [_step(step, node) for step in epilogue.steps]
        if epilogue.threshold is not None:
            steps.append("threshold")
        if steps:
            found["epilogue"] = steps
    return found


def _step(step: Any, node: Node) -> str:
    """``ScaleBias``, or ``AddTensor(shortcut)`` of an operation that reads another value."""
    name = type(step).__name__
    return f"{name}({node.inputs[step.operand]})" if isinstance(step, TensorOp) else name


def _constants(node: Node) -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays by name: ``conv1.weights``, ``conv1.epilogue0.scale``, ``conv1.threshold``."""
    for name, array in arrays_of(node.op).items():
        yield f"{node.name}.{name}", array
    epilogue = epilogue_of(node.op)
    if epilogue is None:
        return
    for number, step in enumerate(epilogue.steps):
        for name, array in arrays_of(step).items():
            yield f"{node.name}.epilogue{number}.{name}", array
    if epilogue.threshold is not None:
        yield f"{node.name}.threshold", epilogue.threshold


def _value(name: str, kind: TensorType) -> Any:
    from onnx import TensorProto, helper

    types = {
        DataType.BIT: TensorProto.BOOL,
        DataType.U8: TensorProto.UINT8,
        DataType.F32: TensorProto.FLOAT,
    }
    return helper.make_tensor_value_info(name, types[kind.dtype], ["N", *kind.shape])


def _without_values(name: str, array: NDArray[Any]) -> Any:
    from onnx import TensorProto, helper

    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
    values = helper.make_tensor(name, dtype, [0], [])
    indices = helper.make_tensor("", TensorProto.INT64, [0], [])
    return helper.make_sparse_tensor(values, indices, list(array.shape))
