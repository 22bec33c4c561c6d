"""Engine graph to ``.pbit`` bytes: names, tensors, ops and steps become records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.constants import ConstantPool, weight_words
from phonebit.converter.engine_rules import EPILOGUE_OPS, FUNCTION_KINDS, WINDOW_OPS, check_engine
from phonebit.converter.infer import infer
from phonebit.converter.ir import (
    AddTensor,
    AveragePool2D,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Clamp,
    Concat,
    Conv2D,
    Elementwise,
    Epilogue,
    Graph,
    Input,
    MaxPool2D,
    MultiplyTensor,
    Node,
    Operator,
    Pad,
    PRelu,
    Reshape,
    ScaleBias,
    SelectChannels,
    Softmax,
    Step,
    TensorType,
)
from phonebit.errors import ConversionError
from phonebit.format.bits import pack_mask
from phonebit.format.contents import FileContents, Indices, Records
from phonebit.format.records import (
    DETECTION,
    NONE,
    OP,
    PREPROCESSING,
    STEP,
    TENSOR,
    DataType,
    OpKind,
    StepKind,
    ThresholdKind,
)
from phonebit.format.writer import file_bytes
from phonebit.layer_info import TensorInfo

OP_KINDS: Final[dict[type[Operator], OpKind]] = {
    BinaryConv2D: OpKind.BINARY_CONV2D,
    BinaryDepthwiseConv2D: OpKind.BINARY_DEPTHWISE_CONV2D,
    Conv2D: OpKind.CONV2D,
    MaxPool2D: OpKind.MAX_POOL2D,
    AveragePool2D: OpKind.AVERAGE_POOL2D,
    Elementwise: OpKind.ELEMENTWISE,
    Concat: OpKind.CONCAT,
    Pad: OpKind.PAD,
    Reshape: OpKind.RESHAPE,
    SelectChannels: OpKind.SELECT_CHANNELS,
    Softmax: OpKind.SOFTMAX,
}


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


def weights_type(op: Conv2D | BinaryConv2D | BinaryDepthwiseConv2D) -> DataType:
    """How the weights of this operator are written: BIT, I8, F16 or F32."""
    if isinstance(op, Conv2D) and not np.all(np.abs(op.weights) == 1):
        return op.stored_as
    return DataType.BIT


class _Writer:
    """Assigns indices while it walks the graph once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = ConstantPool()
        self.strings = bytearray()
        self.name_offsets: dict[str, int] = {}
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
            metadata={**metadata, "name": self.graph.name},
            preprocessing=self._preprocessing(),
            labels=_indices(labels),
            detection=self._detection(),
            strings=bytes(self.strings) or b"\0",
        )

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
        if name not in self.name_offsets:
            self.name_offsets[name] = len(self.strings)
            self.strings.extend(name.encode() + b"\0")
        return self.name_offsets[name]

    def _tensor(self, name: str, kind: TensorType) -> Records:
        record = np.zeros((), TENSOR)
        record["name_offset"], record["dtype"] = self._name(name), kind.dtype
        record["height"], record["width"], record["channels"] = kind.shape
        return record

    def _op(self, node: Node) -> Records:
        op = node.op
        record = np.zeros((), OP)
        record["kind"], record["name_offset"] = _op_kind(op), self._name(node.name)
        mains = node.inputs if isinstance(op, Concat) else node.inputs[:1]
        record["operand_begin"], record["operand_count"] = len(self.operands), len(mains)
        self.operands += [self.tensors[name] for name in mains]
        self._outputs(record, node)
        record["weights"] = record["threshold"] = record["flip_mask"] = NONE
        for field in ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"):
            record[field] = 1
        record["groups"] = record["input_mul"] = 1
        self._geometry(record, op)
        if isinstance(op, Conv2D | BinaryConv2D | BinaryDepthwiseConv2D):
            record["weights"] = self._weights(op)
        if isinstance(op, SelectChannels):
            record["weights"] = self.constants.add(op.indices, DataType.I32)
        if isinstance(op, MaxPool2D) and op.flip is not None and op.flip.any():
            record["flip_mask"] = self.constants.add(pack_mask(op.flip), DataType.BIT)
        record["step_begin"] = len(self.steps)
        if isinstance(op, EPILOGUE_OPS):
            self.steps += [self._step(node, step) for step in op.epilogue.steps]
            self._threshold(record, op.epilogue)
        record["step_count"] = len(self.steps) - int(record["step_begin"])
        return record

    def _outputs(self, record: Records, node: Node) -> None:
        """The bits that max-pooling and concatenation copy are an op's bits output in the file."""
        value, bits = node.value, node.bits
        if value is not None and self.graph.types[value].dtype == DataType.BIT:
            value, bits = None, value
        record["value_output"] = NONE if value is None else self.tensors[value]
        record["bits_output"] = NONE if bits is None else self.tensors[bits]

    def _geometry(self, record: Records, op: Operator) -> None:
        if isinstance(op, WINDOW_OPS):
            window = op.window
            record["kernel_h"], record["kernel_w"] = window.kernel
            record["stride_h"], record["stride_w"] = window.strides
            record["dilation_h"], record["dilation_w"] = window.dilation
            _set_pads(record, window.pads)
        if isinstance(op, Conv2D | BinaryConv2D):
            record["groups"] = op.groups
        if isinstance(op, Conv2D):
            record["input_mul"], record["input_add"] = op.input_mul, op.input_add
        if isinstance(op, BinaryConv2D | BinaryDepthwiseConv2D):
            record["pad_value"] = op.pad_value
        if isinstance(op, Pad):
            _set_pads(record, op.pads)
            record["pad_value"] = op.value

    def _weights(self, op: Conv2D | BinaryConv2D | BinaryDepthwiseConv2D) -> int:
        stored = weights_type(op)
        if stored != DataType.BIT:
            return self.constants.add(op.weights, stored)
        words = weight_words(op.weights, isinstance(op, BinaryDepthwiseConv2D))
        return self.constants.add(words, DataType.BIT)

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

    def _step(self, node: Node, step: Step) -> Records:
        record = np.zeros((), STEP)
        record["tensor"] = record["constant_a"] = record["constant_b"] = NONE
        if isinstance(step, ScaleBias):
            record["kind"] = StepKind.SCALE_BIAS
            record["constant_a"] = self.constants.add(step.scale, DataType.F32)
            record["constant_b"] = self.constants.add(step.bias, DataType.F32)
        elif isinstance(step, AddTensor | MultiplyTensor):
            adds = isinstance(step, AddTensor)
            record["kind"] = StepKind.ADD if adds else StepKind.MULTIPLY
            record["tensor"] = self.tensors[node.inputs[step.operand]]
        elif isinstance(step, Clamp):
            record["kind"] = StepKind.CLAMP
            record["value_a"], record["value_b"] = step.low, step.high
        elif isinstance(step, PRelu):
            record["kind"] = StepKind.PRELU
            record["constant_a"] = self.constants.add(step.slope, DataType.F32)
            if step.positive is not None:
                record["constant_b"] = self.constants.add(step.positive, DataType.F32)
        else:
            record["kind"] = FUNCTION_KINDS[type(step)]
        return record


def _op_kind(op: Operator) -> OpKind:
    is_log = isinstance(op, Softmax) and op.log
    return OpKind.LOG_SOFTMAX if is_log else OP_KINDS[type(op)]


def _set_pads(record: Records, pads: tuple[int, int, int, int]) -> None:
    record["pad_top"], record["pad_left"], record["pad_bottom"], record["pad_right"] = pads


def _indices(values: list[int]) -> Indices:
    return np.array(values, dtype="<u4")


def _stack(records: list[Records], dtype: np.dtype[Any]) -> Records:
    return np.stack(records) if records else np.zeros(0, dtype)
