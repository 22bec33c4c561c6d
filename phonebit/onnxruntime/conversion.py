"""From nodes of a model to the node that stands for them and holds a ``.pbit`` file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from phonebit.acceleration_report import AcceleratedPart
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.errors import named
from phonebit.converter.importers.onnx.importer import translated
from phonebit.converter.importers.onnx.node_reader import Reading
from phonebit.converter.importers.onnx.reader import read_model
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.ir import Graph
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.errors import ConversionError, UnsupportedLayerError
from phonebit.onnxruntime.model_view import ModelView

SOURCE: Final = "PhoneBit"
"""The provider's name, and that of the nodes that it takes."""
MAP_AXES: Final = 4
MOVED: Final = ("int32", "int64")
"""Types of inputs that a file takes as floats."""


@dataclass(frozen=True)
class ConvertedPart:
    """Nodes that have become one.

    Attributes:
        nodes: that node, with casts of its inputs where a file has other types.
        values: what is known of its results.
        part: what the report says of it.
    """

    nodes: Sequence[Any]
    values: Sequence[Any]
    part: AcceleratedPart


def unsupported(view: ModelView, nodes: Sequence[int]) -> dict[int, str]:
    """Which of the nodes the importer cannot express as a part, and why.

    Raises:
        ConversionError: All of them, for another reason.
    """
    try:
        _translated(view, nodes, True)
    except UnsupportedLayerError as error:
        makers = {
            name: index for index in nodes for name in view.model.graph.node[index].output if name
        }
        own = {str(index): index for index in nodes} | makers
        reasons = {}
        for name, why in error.reasons.items():  # a node's name, or a result's and what led to it
            maker = own.get(name, own.get(name.rpartition("/")[0]))
            if maker is not None:
                reasons[maker] = why
        if not reasons:
            raise
        return reasons
    return {}


def converted(view: ModelView, nodes: Sequence[int], name: str, zeros: Zeros) -> ConvertedPart:
    """Converts nodes that the importer can express.

    Args:
        view: Their model.
        nodes: Their numbers.
        name: Of the part.
        zeros: As in ``phonebit.convert``.

    Raises:
        ConversionError: They cannot be converted.
    """
    reading, graph = _translated(view, nodes, False)
    conversion = convert_graph(graph, origin={"framework": "onnx"}, zeros=zeros)
    part = AcceleratedPart.of(name, conversion.report)
    return _replacement(view, nodes, reading, conversion.content, part)


def _translated(view: ModelView, nodes: Sequence[int], numbered: bool) -> tuple[Reading, Graph]:
    unsupported_error: UnsupportedLayerError | None = None
    model = view.part(nodes, numbered)
    name = model.graph.name or "network"
    with named(name, name):
        reading = read_model(model, view.folder, None)
        try:
            graph = translated(reading, name).graph
        except UnsupportedLayerError as error:  # whose reasons a renamed one would not have
            unsupported_error = error
    if unsupported_error is not None:
        raise unsupported_error
    wanted = view.outputs_of(nodes)
    if len(graph.outputs) != len(wanted) or len(graph.inputs) != len(view.inputs_of(nodes)):
        raise ConversionError("gives one value under several names, or one that is an input")
    return reading, graph


def _replacement(
    view: ModelView, nodes: Sequence[int], reading: Reading, content: bytes, part: AcceleratedPart
) -> ConvertedPart:
    from onnx import TensorProto, helper

    program = reading.program
    result: list[Any] = []
    taken = []
    for name, call in zip(view.inputs_of(nodes), program.inputs, strict=True):
        taken.append(name)
        if str(call.dtype) in MOVED:
            taken[-1] = f"{name}/phonebit/{nodes[0]}"
            result.append(helper.make_node("Cast", [name], [taken[-1]], to=TensorProto.FLOAT))
    wanted = view.outputs_of(nodes)
    channels_last = program.channels_last
    words = ["bytes", str(len(content))]
    for side, calls in (("in", program.inputs), ("out", program.outputs)):
        for call in calls:
            words += [side, *_form(call, call in channels_last)]
    result.append(
        helper.make_node(
            "EPContext",
            taken,
            wanted,
            name=f"phonebit_{nodes[0]}",
            domain="com.microsoft",
            main_context=1,
            embed_mode=1,
            ep_cache_context=content,
            source=SOURCE,
            partition_name=part.name or "network",
            notes=" ".join(words),
        )
    )
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (None, *call.shape[1:]))
        for name, call in zip(wanted, program.outputs, strict=True)
    ]
    return ConvertedPart(result, values, part)


def _form(call: Call, is_channels_last: bool) -> Iterator[str]:
    """A tensor as the provider reads it in the node: order and sizes without the batch."""
    is_moved = len(call.shape) == MAP_AXES and not is_channels_last
    yield "channels_first" if is_moved else "plain"
    yield from map(str, call.shape[1:])
