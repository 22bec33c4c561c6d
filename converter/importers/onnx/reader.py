"""An ONNX model as calls of ATen operators, which the importer of PyTorch translates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.onnx.files import opsets
from phonebit.converter.importers.onnx.node_reader import MAX_INPUT, NodeReader, Reading
from phonebit.converter.importers.onnx.nodes import Node, attributes_of, path_of
from phonebit.converter.importers.onnx.rules import rule_of
from phonebit.converter.importers.onnx.tensors import Tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.errors import ConversionError

TO_CHANNELS_FIRST: Final = [0, 3, 1, 2]
NORMALISING: Final = ("Cast", "Add", "Sub", "Mul", "Div")
MAX_AXES: Final = 8


def read_model(model: Any, folder: Path | None, input_shape: Sequence[int] | None) -> Reading:
    """Reads a checked model.

    Args:
        model: A ``ModelProto``, see ``files.check_model``.
        folder: Where tensors outside of it may lie; None if nowhere.
        input_shape: Of its only input, for models that leave it open.

    Raises:
        ConversionError: It is inconsistent, or its inputs' shapes are open.
    """
    return _Reader(model, folder, input_shape).read()


class _Reader(NodeReader):
    def __init__(self, model: Any, folder: Path | None, input_shape: Sequence[int] | None) -> None:
        super().__init__()
        self._graph = model.graph
        self._opsets = opsets(model)
        self._functions = {(f.domain, f.name) for f in model.functions}
        self._tensors = Tensors(folder)
        self._given = input_shape

    def read(self) -> Reading:
        for tensor in self._graph.initializer:
            array = self._tensors.array(tensor, tensor.name)
            self._define(tensor.name, self._builder.parameter(array, tensor.name))
        inputs = [value for value in self._graph.input if value.name not in self._values]
        for value in inputs:
            self._define(value.name, self._input(value, len(inputs)))
        for index, proto in enumerate(self._graph.node):
            self._node(proto, index)
        return self._finished((value.name for value in self._graph.output), _ends_channels_last)

    def _input(self, value: Any, count: int) -> Call:
        from onnx import TensorProto

        kind = value.type.tensor_type
        known = {TensorProto.FLOAT: "float32", TensorProto.UINT8: "uint8"}
        shape = self._shape(value.name, kind.shape.dim, count)
        name = TensorProto.DataType.DESCRIPTOR.values_by_number
        other = name[kind.elem_type].name.lower() if kind.elem_type in name else "no tensor"
        call = Call(value.name, "input", None, {}, shape, known.get(kind.elem_type, other))
        self._program.inputs.append(call)
        if self._is_channels_last(value.name, shape):
            self._program.channels_last.add(call)
        return call

    def _shape(self, name: str, dims: Any, count: int) -> tuple[int, ...]:
        """The input's shape; a batch that is left open is 1."""
        sizes = [int(dim.dim_value) if dim.HasField("dim_value") else 0 for dim in dims]
        if self._given is not None:
            given = [int(size) for size in self._given]
            sizes = sizes or [0] * len(given)
            fits = len(sizes) == len(given) and count == 1
            if not fits or any(a not in (0, b) for a, b in zip(sizes, given, strict=True)):
                raise ConversionError(
                    "input_shape does not fit", where=repr(name), expected=sizes, got=given
                )
            sizes = given
        elif sizes and sizes[0] < 1:
            sizes[0] = 1
        if not 1 <= len(sizes) <= MAX_AXES or min(sizes) < 1 or math.prod(sizes) > MAX_INPUT:
            texts = [dim.dim_param or int(dim.dim_value) or "?" for dim in dims]
            raise ConversionError(
                f"input {name!r} has an open or impossible shape",
                expected=f"sizes above 0, at most {MAX_INPUT} elements",
                got=texts,
                hint="pass input_shape (--input-shape 1,3,224,224)",
            )
        return tuple(sizes)

    def _is_channels_last(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether all that happens to a map is that its channels are moved to the front.

        That exporters of channels-last networks write, perhaps after a normalisation.
        """
        readers: dict[str, list[Any]] = {}
        for node in self._graph.node:
            for read in node.input:
                readers.setdefault(read, []).append(node)
        moved, seen, waiting = False, {name}, [name]
        while waiting and len(shape) == 4:
            for node in readers.get(waiting.pop(), ()):
                if node.op_type in NORMALISING:
                    waiting += [output for output in node.output if output not in seen]
                    seen.update(node.output)
                    continue
                perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
                one_channel = node.op_type == "Reshape" and shape[3] == 1
                if not one_channel and (node.op_type != "Transpose" or perm != TO_CHANNELS_FIRST):
                    return False
                moved = True
        return moved

    def _node(self, proto: Any, index: int) -> None:
        path = path_of(proto, index)
        title = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        where = path or next(iter(proto.output), "") or title
        inputs = [self._operand(name, where) for name in proto.input]
        outputs = list(proto.output)

        def make() -> object:
            domain = "" if proto.domain == "ai.onnx" else proto.domain
            if (proto.domain, proto.op_type) in self._functions:
                raise UnsupportedError(
                    "is a function of the model's own; inline it (onnx.inliner) before conversion"
                )
            rule = rule_of(domain, proto.op_type)
            attributes = attributes_of(proto, self._tensors, where)
            if rule is None:
                raise UnsupportedError(f"is not supported (domain {domain or 'ai.onnx'})")
            if None in [self._values[name] for name in proto.input if name]:
                return None
            version = self._opsets.get(domain, 1)
            node = Node(proto.op_type, domain, version, inputs, outputs, path, attributes)
            self._builder.begin(node)
            return rule(self._builder, node)

        self._apply(where, title, outputs, make)


def _ends_channels_last(call: Call) -> bool:
    return call.op == "permute" and list(call["dims"]) == [0, 2, 3, 1]
