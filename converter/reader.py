"""``.pbit`` file to engine graph, so that the reference interpreter can run any file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from phonebit.converter.engine_rules import check_engine
from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, TensorType
from phonebit.converter.ops import OPERATORS, BitPlanes, Input
from phonebit.converter.ops.epilogue import EPILOGUE_OPS, Epilogue
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.converter.origins import Origin, origins_in
from phonebit.converter.records import RecordReader
from phonebit.detection.head import DetectionHead
from phonebit.errors import ConversionError, ModelFormatError
from phonebit.format.contents import FileContents
from phonebit.format.reader import RE_EXPORT, parse_contents, read_contents
from phonebit.format.records import NONE, DataType, OpKind, StepKind, ThresholdKind
from phonebit.images.preprocessing import Preprocessing
from phonebit.layer_info import array_shape_of, arrays_of


def read_graph(path: str | Path) -> Graph:
    """Reads a file into an engine graph.

    Raises:
        ModelFormatError: The file is unreadable, damaged, or its records contradict each other.
    """
    return graph_from_contents(read_contents(path), str(path))


def graph_from_bytes(content: bytes, where: str = "model") -> Graph:
    """The same as ``read_graph`` for a file in memory; ``where`` names it in errors."""
    return graph_from_contents(parse_contents(content, where), where)


def graph_from_contents(contents: FileContents, where: str = "model") -> Graph:
    """Gives the sections of a file their meaning and checks that they agree with each other."""
    graph = _Reader(contents, where).graph()
    try:
        types = infer(graph)
        unwritten = graph.types.keys() - types.keys()
        if unwritten:
            raise ConversionError(f"tensor {min(unwritten)!r} is never written", hint=RE_EXPORT)
        for name, kind in types.items():
            if graph.types[name] != kind:
                raise ConversionError(
                    f"tensor {name!r}", expected=kind, got=graph.types[name], hint=RE_EXPORT
                )
        check_engine(graph)
    except ConversionError as error:
        raise ModelFormatError(str(error), where=where) from error
    return graph


class _Reader:
    def __init__(self, contents: FileContents, where: str) -> None:
        self.contents = contents
        self.where = where
        self.names = [contents.name(int(record["name_offset"])) for record in contents.tensors]
        self.kinds = [
            TensorType(
                (int(record["height"]), int(record["width"]), int(record["channels"])),
                DataType(int(record["dtype"])),
            )
            for record in contents.tensors
        ]

    def graph(self) -> Graph:
        contents = self.contents
        inputs = [self.names[index] for index in contents.inputs]
        nodes = [Node(name, Input(), [], value=name) for name in inputs]
        nodes += [self._node(record) for record in contents.ops]
        return Graph(
            name=str(contents.metadata.get("name", Path(self.where).stem)),
            nodes=nodes,
            types=dict(zip(self.names, self.kinds, strict=True)),
            inputs=inputs,
            outputs=[self.names[index] for index in contents.outputs],
            labels=self._labels(),
            preprocessing=self._preprocessing(),
            detection=self._detection(),
            arrays=self._arrays(),
            origins=self._origins(),
        )

    def _labels(self) -> list[str]:
        """Of the section, or of the metadata of files from before there was one."""
        contents = self.contents
        if contents.labels.size:
            return [contents.name(int(offset)) for offset in contents.labels]
        labels = contents.metadata.get("labels")
        return [str(label) for label in labels] if isinstance(labels, list) else []

    def _arrays(self) -> dict[str, tuple[int, ...]]:
        """Of the metadata, for inputs and outputs that have as many elements."""
        told, kinds = (
            arrays_of(self.contents.metadata),
            dict(zip(self.names, self.kinds, strict=True)),
        )
        places = (*self.contents.inputs, *self.contents.outputs)
        shapes = {
            name: array_shape_of(kinds[name].shape, told.get(name))
            for name in (self.names[place] for place in places)
        }
        return {name: sizes for name, sizes in shapes.items() if sizes}

    def _origins(self) -> dict[str, Origin]:
        pairs = zip(self.names, self.kinds, strict=True)
        bits = [name for name, kind in pairs if kind.dtype == DataType.BIT]
        return origins_in(self.contents.metadata, bits)

    def _preprocessing(self) -> dict[str, Preprocessing]:
        rules = {}
        for record in self.contents.preprocessing:
            tensor = int(self.contents.inputs[record["input"]])
            channels = self.kinds[tensor].shape[2]
            rules[self.names[tensor]] = Preprocessing.from_record(record, channels)
        return rules

    def _detection(self) -> dict[str, DetectionHead]:
        outputs = self.contents.outputs
        return {
            self.names[outputs[record["output"]]]: DetectionHead.from_record(record)
            for record in self.contents.detection
        }

    def _node(self, record: np.void) -> Node:
        name = self.contents.name(int(record["name_offset"]))
        operator = OPERATORS[OpKind(int(record["kind"]))]
        begin, count = int(record["operand_begin"]), int(record["operand_count"])
        inputs = [int(index) for index in self.contents.operands[begin : begin + count]]
        value, bits = int(record["value_output"]), int(record["bits_output"])
        main, output = (self.kinds[index] for index in (inputs[0], value if bits == NONE else bits))
        reader = RecordReader(self.contents, record, main, output, inputs)
        copies_bits = operator.copies_bits and main.dtype == DataType.BIT and bits != NONE
        if copies_bits:
            value, bits = bits, NONE
        op = operator.read(reader)
        if isinstance(op, EpilogueOperator):
            op.epilogue = self._epilogue(reader)
        planes = self.names[bits : bits + op.count] if isinstance(op, BitPlanes) else []
        return Node(
            name,
            op,
            [self.names[index] for index in inputs],
            value=None if value == NONE else self.names[value],
            bits=None if bits == NONE or planes else self.names[bits],
            planes=planes,
        )

    def _epilogue(self, op: RecordReader) -> Epilogue:
        begin, count = op.integer("step_begin"), op.integer("step_count")
        records = [op.of(step) for step in self.contents.steps[begin : begin + count]]
        steps = [EPILOGUE_OPS[StepKind(step.integer("kind"))].read(step) for step in records]
        kind, channels = ThresholdKind(op.integer("threshold_kind")), op.output.shape[2]
        if kind == ThresholdKind.NONE:
            return Epilogue(steps)
        if kind == ThresholdKind.F32 and not op.has("threshold"):
            return Epilogue(steps, np.zeros(channels, np.float32))
        return Epilogue(steps, op.constant("threshold"))
