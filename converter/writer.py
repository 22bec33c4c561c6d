"""Engine graph to ``.pbit`` bytes: names, tensors, ops and steps become records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from phonebit.converter.engine_rules import check_engine
from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, TensorType
from phonebit.converter.ops import Input
from phonebit.converter.ops.base import EngineOperator
from phonebit.converter.ops.epilogue import Epilogue, EpilogueOp
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.converter.origins import to_json
from phonebit.converter.records import RecordWriter
from phonebit.errors import ConversionError
from phonebit.format.constants import ConstantPool
from phonebit.format.contents import FileContents, Indices, Records
from phonebit.format.records import (
    DETECTION,
    NONE,
    OP,
    PREPROCESSING,
    STEP,
    TENSOR,
    DataType,
    ThresholdKind,
)
from phonebit.format.strings import StringPool
from phonebit.format.writer import file_bytes
from phonebit.layer_info import TensorInfo


def to_bytes(graph: Graph, metadata: Mapping[str, Any] | None = None) -> bytes:
    """Serialises an engine graph.

    Args:
        graph: Engine graph; its types are inferred anew.
        metadata: JSON-able description; the network's name is added to it.

    Returns:
        The bytes of the file; ``phonebit.output_files.write_output`` puts them on disk.

    Raises:
        ConversionError: The graph is inconsistent or holds what the format cannot express.
    """
    return file_bytes(to_contents(graph, metadata))


def to_contents(graph: Graph, metadata: Mapping[str, Any] | None = None) -> FileContents:
    """The sections that ``to_bytes`` puts together; see there."""
    checked = replace(graph, types=infer(graph))
    check_engine(checked)
    return _Writer(checked).contents(metadata or {})


class _Writer:
    """Assigns indices while it walks the graph once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = ConstantPool()
        self.names = StringPool()
        self.operands: list[int] = []
        self.steps: list[Records] = []
        self.tensors = {
            name: index
            for index, name in enumerate(name for node in graph.nodes for name in node.outputs)
        }

    def contents(self, metadata: Mapping[str, Any]) -> FileContents:
        ops = [self._op(node) for node in self.graph.nodes if not isinstance(node.op, Input)]
        tensors = [self._tensor(name, self.graph.types[name]) for name in self.tensors]
        labels = [self._name(label) for label in self._labels()]
        return FileContents(
            tensors=_stack(tensors, TENSOR),
            constants=self.constants.records(),
            operands=_indices(self.operands),
            steps=_stack(self.steps, STEP),
            ops=_stack(ops, OP),
            inputs=_indices([self.tensors[name] for name in self.graph.inputs]),
            outputs=_indices([self.tensors[name] for name in self.graph.outputs]),
            data=self.constants.data(),
            metadata=self._metadata(metadata),
            preprocessing=self._preprocessing(),
            labels=_indices(labels),
            detection=self._detection(),
            strings=self.names.content() or b"\0",
        )

    def _metadata(self, given: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {**given, "name": self.graph.name}
        if self.graph.arrays:
            metadata["arrays"] = {name: list(sizes) for name, sizes in self.graph.arrays.items()}
        bits = {name for name, kind in self.graph.types.items() if kind.dtype == DataType.BIT}
        known = {name: origin for name, origin in self.graph.origins.items() if name in bits}
        metadata["origins"] = to_json(known)
        return metadata

    def _labels(self) -> list[str]:
        graph = self.graph
        classes = graph.class_count()
        if graph.labels and len(graph.labels) != classes:
            raise ConversionError("number of labels", expected=classes, got=len(graph.labels))
        return graph.labels

    def _preprocessing(self) -> Records:
        graph, records = self.graph, []
        for name, rule in graph.preprocessing.items():
            shape = graph.types[name].shape
            chosen = rule.for_input(TensorInfo(name, "f32", shape))
            records.append(chosen.to_record(graph.inputs.index(name), shape[2]))
        return _stack(records, PREPROCESSING)

    def _detection(self) -> Records:
        graph, records = self.graph, []
        for name, head in graph.detection.items():
            head.classes(graph.types[name].shape[2])
            records.append(head.to_record(graph.outputs.index(name)))
        return _stack(records, DETECTION)

    def _name(self, name: str) -> int:
        if not name or "\0" in name:
            raise ConversionError("names are not empty and hold no zero character", got=repr(name))
        return self.names.add(name)

    def _tensor(self, name: str, kind: TensorType) -> Records:
        record = np.zeros((), TENSOR)
        record["name_offset"], record["dtype"] = self._name(name), kind.dtype
        record["height"], record["width"], record["channels"] = kind.shape
        return record

    def _op(self, node: Node) -> Records:
        op = node.op
        assert isinstance(op, EngineOperator)
        record = np.zeros((), OP)
        record["kind"], record["name_offset"] = op.kind, self._name(node.name)
        record["operand_begin"], record["operand_count"] = (
            len(self.operands),
            len(node.main_inputs),
        )
        self.operands += [self.tensors[name] for name in node.main_inputs]
        self._outputs(record, node)
        record["weights"] = record["threshold"] = record["flip_mask"] = NONE
        for field in ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"):
            record[field] = 1
        record["groups"] = record["input_mul"] = 1
        inputs = [self.tensors[name] for name in node.inputs]
        writer = RecordWriter(record, self.constants, inputs)
        op.write(writer)
        record["step_begin"] = len(self.steps)
        if isinstance(op, EpilogueOperator):
            self.steps += [self._step(writer, step) for step in op.epilogue.steps]
            self._threshold(record, op.epilogue)
        record["step_count"] = len(self.steps) - int(record["step_begin"])
        return record

    def _outputs(self, record: Records, node: Node) -> None:
        """The bits that max-pooling and concatenation copy are an op's bits output in the file."""
        value, bits = node.value, node.planes[0] if node.planes else node.bits
        if value is not None and self.graph.types[value].dtype == DataType.BIT:
            value, bits = None, value
        record["value_output"] = NONE if value is None else self.tensors[value]
        record["bits_output"] = NONE if bits is None else self.tensors[bits]

    def _threshold(self, record: Records, epilogue: Epilogue) -> None:
        threshold = epilogue.threshold
        if threshold is None:
            return
        if threshold.dtype == np.int32:
            record["threshold_kind"] = ThresholdKind.I32
            record["threshold"] = self.constants.add(threshold, DataType.I32)
            return
        record["threshold_kind"] = ThresholdKind.F32
        if np.any(threshold != 0):
            record["threshold"] = self.constants.add(threshold, DataType.F32)

    @staticmethod
    def _step(op: RecordWriter, step: EpilogueOp) -> Records:
        record = np.zeros((), STEP)
        record["tensor"] = record["constant_a"] = record["constant_b"] = NONE
        record["kind"] = step.kind
        step.write(op.of(record))
        return record


def _indices(values: list[int]) -> Indices:
    return np.array(values, dtype="<u4")


def _stack(records: list[Records], dtype: np.dtype[Any]) -> Records:
    return np.stack(records) if records else np.zeros(0, dtype)
