"""ONNX files as data: bounded, and checked before anything computes with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.files import read_file
from phonebit.errors import ConversionError
from phonebit.output_files import FileKind

ONNX_FILE: Final = FileKind("an ONNX file", lambda head: head.startswith(b"\x08"))
MAX_FILE_BYTES: Final = 1 << 31
"""What one protobuf message can have; larger networks keep their tensors in other files."""
MAX_VERSION: Final = 1000
MAX_NODES: Final = 1 << 16


def load_model(path: Path) -> Any:
    """The ``ModelProto`` in a file, its tensors unread.

    Args:
        path: An ``.onnx`` file.

    Raises:
        ConversionError: The package onnx is missing, or the file, or it holds no ONNX model.
    """
    content = read_file(path, "onnx", MAX_FILE_BYTES, "save the model with external data")
    import onnx

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # protobuf's own, which differ between its implementations
        raise ConversionError("is damaged, or no ONNX file") from error
    return check_model(model)


def check_model(model: Any) -> Any:
    """A model that has a graph of one name a value.

    Raises:
        ConversionError: It has not.
    """
    if not model.HasField("graph") or not model.graph.node:
        raise ConversionError("holds no graph", expected="an ONNX model", got="no nodes")
    graph = model.graph
    if len(graph.node) > MAX_NODES:
        raise ConversionError("too many nodes", expected=MAX_NODES, got=len(graph.node))
    if graph.sparse_initializer:
        raise ConversionError("has sparse tensors", hint="store them as dense initializers")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise ConversionError("is damaged: a name is no UTF-8 text")
    return model


def _texts(model: Any) -> Iterator[object]:
    """Names, which protobuf gives as bytes where they are no UTF-8."""
    graph = model.graph
    yield from (graph.name, *(entry.domain for entry in model.opset_import))
    yield from (text for function in model.functions for text in (function.domain, function.name))
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
        yield from (text for entry in node.metadata_props for text in (entry.key, entry.value))
    for value in (*graph.input, *graph.output):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))


def opsets(model: Any) -> dict[str, int]:
    """The version of each domain's operators; that of ONNX itself is called ""."""
    found = {entry.domain: int(entry.version) for entry in model.opset_import}
    if "ai.onnx" in found:
        found[""] = found.pop("ai.onnx")
    if "" not in found:
        raise ConversionError("does not say which version of ONNX's operators it uses (opset)")
    for domain, version in found.items():
        if not 1 <= version <= MAX_VERSION:
            raise ConversionError(
                f"an impossible version of the operators of {domain or 'ai.onnx'!r} (opset)",
                expected=f"1 to {MAX_VERSION}",
                got=version,
            )
    return found
