"""``.pbit`` file to engine graph, so that the reference interpreter can run any file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.constants import weights_from_words
from phonebit.converter.engine_rules import FUNCTION_KINDS, check_engine
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
    Window,
)
from phonebit.detection.head import DetectionHead
from phonebit.errors import ConversionError, ModelFormatError
from phonebit.format.bits import tail_bits_are_clear, unpack_mask, words_per_row
from phonebit.format.contents import FileContents
from phonebit.format.reader import RE_EXPORT, constant_array, parse_contents, read_contents
from phonebit.format.records import NONE, DataType, OpKind, StepKind, ThresholdKind
from phonebit.preprocessing import Preprocessing


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
        self.op_name = ""

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
        )

    def _labels(self) -> list[str]:
        """Of the section, or of the metadata of files from before there was one."""
        contents = self.contents
        if contents.labels.size:
            return [contents.name(int(offset)) for offset in contents.labels]
        labels = contents.metadata.get("labels")
        return [str(label) for label in labels] if isinstance(labels, list) else []

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

    def _fail(self, what: str, *, expected: object = None, got: object = None) -> NoReturn:
        where = f"{self.where}: {self.op_name}"
        raise ModelFormatError(what, where=where, expected=expected, got=got, hint=RE_EXPORT)

    def _constant(self, index: int, dtype: DataType, count: int, what: str) -> NDArray[Any]:
        if index == NONE:
            self._fail(f"{what} missing")
        kind = DataType(int(self.contents.constants[index]["dtype"]))
        if kind != dtype:
            self._fail(f"type of {what}", expected=dtype.name, got=kind.name)
        array = constant_array(self.contents, index)
        if array.size != count:
            self._fail(f"size of {what}", expected=count, got=array.size)
        return array

    def _node(self, record: np.void) -> Node:
        self.op_name = self.contents.name(int(record["name_offset"]))
        kind = OpKind(int(record["kind"]))
        begin, count = int(record["operand_begin"]), int(record["operand_count"])
        if (count < 2) if kind == OpKind.CONCAT else (count != 1):
            self._fail("operand count", got=count)
        mains = [int(index) for index in self.contents.operands[begin : begin + count]]
        inputs = [self.names[index] for index in mains]
        value, bits = int(record["value_output"]), int(record["bits_output"])
        copies_bits = (
            kind in (OpKind.MAX_POOL2D, OpKind.CONCAT)
            and self.kinds[mains[0]].dtype == DataType.BIT
            and bits != NONE
        )
        if copies_bits:
            if value != NONE:
                self._fail("writes a value beside the bits that it copies")
            value, bits = bits, NONE
        epilogue = self._epilogue(record, value if bits == NONE else bits, inputs)
        op = self._operator(record, kind, mains[0], epilogue, value if bits == NONE else bits)
        has_epilogue = hasattr(op, "epilogue") and not copies_bits
        if not has_epilogue and (epilogue.steps or epilogue.threshold is not None):
            self._fail("has steps or a threshold, can have none")
        return Node(
            self.op_name,
            op,
            inputs,
            value=None if value == NONE else self.names[value],
            bits=None if bits == NONE else self.names[bits],
        )

    def _epilogue(self, record: np.void, output: int, inputs: list[str]) -> Epilogue:
        channels = self.kinds[output].shape[2]
        begin, count = int(record["step_begin"]), int(record["step_count"])
        records = self.contents.steps[begin : begin + count]
        steps = [self._step(step, output, inputs) for step in records]
        index, kind = int(record["threshold"]), ThresholdKind(int(record["threshold_kind"]))
        if kind == ThresholdKind.NONE:
            return Epilogue(steps)
        if kind == ThresholdKind.I32:
            return Epilogue(steps, self._constant(index, DataType.I32, channels, "threshold"))
        if index == NONE:
            return Epilogue(steps, np.zeros(channels, np.float32))
        return Epilogue(steps, self._constant(index, DataType.F32, channels, "threshold"))

    def _step(self, record: np.void, output: int, inputs: list[str]) -> Step:
        """One step; a tensor that it reads is appended to the node's inputs."""
        kind = StepKind(int(record["kind"]))
        shape = self.kinds[output].shape
        first, second = int(record["constant_a"]), int(record["constant_b"])
        if kind == StepKind.SCALE_BIAS:
            scale = self._constant(first, DataType.F32, shape[2], "scale")
            return ScaleBias(scale, self._constant(second, DataType.F32, shape[2], "bias"))
        if kind in (StepKind.ADD, StepKind.MULTIPLY):
            if record["tensor"] == NONE:
                self._fail("a step lacks its tensor")
            inputs.append(self.names[int(record["tensor"])])
            operand = len(inputs) - 1
            return AddTensor(operand) if kind == StepKind.ADD else MultiplyTensor(operand)
        if kind == StepKind.CLAMP:
            return Clamp(float(record["value_a"]), float(record["value_b"]))
        if kind == StepKind.PRELU:
            per_channel = first != NONE and self.contents.constants[first]["count"] == shape[2]
            count = shape[2] if per_channel else int(np.prod(shape))
            slope = self._constant(first, DataType.F32, count, "slope")
            if second == NONE:
                return PRelu(slope)
            return PRelu(slope, self._constant(second, DataType.F32, count, "positive slope"))
        return next(step() for step, number in FUNCTION_KINDS.items() if number == kind)

    def _operator(
        self, record: np.void, kind: OpKind, main: int, epilogue: Epilogue, output: int
    ) -> Operator:
        pads = tuple(int(record[f"pad_{side}"]) for side in ("top", "left", "bottom", "right"))
        pads = (pads[0], pads[1], pads[2], pads[3])
        window = Window(
            (int(record["kernel_h"]), int(record["kernel_w"])),
            (int(record["stride_h"]), int(record["stride_w"])),
            (int(record["dilation_h"]), int(record["dilation_w"])),
            pads,
        )
        if kind == OpKind.ELEMENTWISE:
            return Elementwise(epilogue)
        if kind == OpKind.CONCAT:
            return Concat()
        if kind == OpKind.PAD:
            return Pad(pads, float(record["pad_value"]))
        if kind == OpKind.RESHAPE:
            return Reshape(self.kinds[output].shape)
        if kind == OpKind.SELECT_CHANNELS:
            index, count = int(record["weights"]), self.kinds[output].shape[2]
            return SelectChannels(self._constant(index, DataType.I32, count, "channel indices"))
        if kind in (OpKind.SOFTMAX, OpKind.LOG_SOFTMAX):
            return Softmax(log=kind == OpKind.LOG_SOFTMAX)
        if kind == OpKind.MAX_POOL2D:
            return MaxPool2D(window, self._flip(record, main), epilogue)
        if kind == OpKind.AVERAGE_POOL2D:
            return AveragePool2D(window, epilogue)
        return self._convolution(record, kind, window, main, epilogue, output)

    def _flip(self, record: np.void, main: int) -> NDArray[np.bool_] | None:
        index = int(record["flip_mask"])
        if index == NONE:
            return None
        channels = self.kinds[main].shape[2]
        words = self._constant(index, DataType.BIT, words_per_row(channels), "flip mask")
        if not tail_bits_are_clear(words, channels):
            self._fail("tail bits of the flip mask are set")
        return unpack_mask(words, channels)

    def _convolution(
        self,
        record: np.void,
        kind: OpKind,
        window: Window,
        main: int,
        epilogue: Epilogue,
        output: int,
    ) -> Operator:
        channels, cout = self.kinds[main].shape[2], self.kinds[output].shape[2]
        depthwise = kind == OpKind.BINARY_DEPTHWISE_CONV2D
        groups = channels if depthwise else int(record["groups"])
        if groups < 1 or channels % groups or (depthwise and cout != channels):
            self._fail("groups do not divide the channels", expected=channels, got=groups)
        shape = (cout, *window.kernel, channels // groups)
        weights = self._weights(int(record["weights"]), shape, depthwise, kind)
        if kind == OpKind.CONV2D:
            mul, add = int(record["input_mul"]), int(record["input_add"])
            floats = weights.astype(np.float32, copy=False)
            op = Conv2D(floats, window, groups, 0.0, None, mul, add, epilogue)
            stored = self._stored_type(int(record["weights"]))
            if stored is DataType.F16 or stored is DataType.I8:
                return replace(op, stored_as=stored)
            return op
        if record["pad_value"] not in (-1.0, 0.0, 1.0):
            self._fail("pad value", expected="-1, 0 or 1", got=float(record["pad_value"]))
        pad_value = int(record["pad_value"])
        signs = weights.astype(np.int8, copy=False)
        if depthwise:
            return BinaryDepthwiseConv2D(signs, window, pad_value, epilogue)
        return BinaryConv2D(signs, window, groups, pad_value, epilogue)

    def _stored_type(self, index: int) -> DataType:
        return DataType(int(self.contents.constants[index]["dtype"]))

    def _weights(
        self, index: int, shape: tuple[int, int, int, int], depthwise: bool, kind: OpKind
    ) -> NDArray[Any]:
        if index == NONE:
            self._fail("weights missing")
        stored = self._stored_type(index)
        if kind == OpKind.CONV2D and stored in (DataType.F32, DataType.F16, DataType.I8):
            count = shape[0] * shape[1] * shape[2] * shape[3]
            return self._constant(index, stored, count, "weights").reshape(shape)
        taps = shape[1] * shape[2]
        rows = taps * words_per_row(shape[0]) if depthwise else 0
        count = rows or shape[0] * taps * words_per_row(shape[3])
        words = self._constant(index, DataType.BIT, count, "weights")
        weights = weights_from_words(words, shape, depthwise)
        if weights is None:
            self._fail("tail bits of the weights are set")
        return weights
